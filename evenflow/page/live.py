"""The page of running jobs: sends messages to tabs, answers queries, and passes actions and looks at state on to jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from ..engine.errors import RequestError
from ..state.errors import EvenflowError
from ..views.policy_snapshots import PolicySnapshots
from .actions import Action, previewed, request_of
from .http import event_stream, json_body, send_event
from .hub import Hub
from .looks import PATHS, Look, look_of
from .queries import QUERIES, Answer, prepared

Act = Callable[[str, Action], Awaitable[Answer]]
"""Asks a job for a change and returns the answer for the page. Raises EvenflowError."""

See = Callable[[str, Look], Awaitable[Answer]]
"""Looks at the state of a job and returns the answer for the page. Raises EvenflowError."""

LARGEST = 1 << 20
"""Bytes of the largest request: the key groups and keys of a move."""


class Live:
    """The page of the jobs of `hub`. `act` changes jobs; None for a read-only page. `see` looks at their state."""

    def __init__(self, hub: Hub, act: Act | None = None, see: See | None = None) -> None:
        self._hub, self._act, self._see = hub, act, see

    @property
    def allows_actions(self) -> bool:
        """True if pages may change jobs."""
        return self._act is not None

    def routes(self) -> list[web.AbstractRouteDef]:
        """Return the routes of the page's requests."""
        return [
            web.get("/events", self._events),
            *(web.get(f"/{name}", self._query) for name in QUERIES),
            *(web.get(f"/{name}", self._look) for name in PATHS),
            web.post("/preview", self._preview),
            web.post("/act", self._do),
        ]

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = await event_stream(request)
        listener = self._hub.listen(request.query.get("job"))
        try:
            while True:
                await send_event(response, await self._hub.next(listener))
        except ConnectionResetError:
            return response
        finally:
            self._hub.leave(listener)

    async def _query(self, request: web.Request) -> web.StreamResponse:
        work = prepared(self._snapshots(request.query.get("job", "")), request.path.strip("/"), request.query.get("operator"))
        return web.json_response(await asyncio.to_thread(work))

    async def _look(self, request: web.Request) -> web.StreamResponse:
        job = request.query.get("job", "")
        self._snapshots(job)
        try:
            look = look_of(request.path.strip("/"), request.query)
            if self._see is None:
                raise RequestError("this page can't look at the state of jobs")
            return web.json_response(await self._see(job, look))
        except EvenflowError as error:
            return web.json_response({"problem": str(error)})

    async def _preview(self, request: web.Request) -> web.StreamResponse:
        """Describe an action's effect without carrying it out."""
        try:
            body = await json_body(request)
            work = previewed(self._snapshots(str(body.get("job"))), body)
            return web.json_response(await asyncio.to_thread(work))
        except EvenflowError as error:
            return web.json_response({"problem": str(error)})

    async def _do(self, request: web.Request) -> web.StreamResponse:
        assert self._act is not None  # the guard has refused the request otherwise
        try:
            body = await json_body(request)
            job = str(body.get("job"))
            return web.json_response(await self._act(job, request_of(self._snapshots(job), body)))
        except EvenflowError as error:
            return web.json_response({"problem": str(error)})

    def _snapshots(self, job: str) -> PolicySnapshots:
        history = self._hub.histories.get(job)
        if history is None:
            raise web.HTTPNotFound(text="this server knows no such job\n")
        return history.snapshots
