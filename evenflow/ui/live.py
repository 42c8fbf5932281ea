"""The page of jobs that run: what is heard goes to tabs, what somebody asks for is answered, and what they may do is handed on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from ..recording.seen import Seen
from ..state.errors import EvenflowError
from .actions import Action, previewed, request_of
from .asked import ASKED, Answer, work_of
from .events import event_stream, send
from .hub import Hub

Act = Callable[[str, Action], Awaitable[Answer]]
"""Asks a job for a change; what the page is told of it. Raises EvenflowError."""

LARGEST = 1 << 20
"""Bytes of what a page may send: the key groups and keys of a move."""


class Live:
    """What `hub` has heard. `act`: how jobs are changed; None if pages may only show."""

    def __init__(self, hub: Hub, act: Act | None = None) -> None:
        self._hub, self._act = hub, act

    @property
    def allows_actions(self) -> bool:
        """Whether pages may change jobs."""
        return self._act is not None

    def routes(self) -> list[web.AbstractRouteDef]:
        """What a page asks for."""
        return [
            web.get("/events", self._events),
            *(web.get(f"/{name}", self._asked) for name in ASKED),
            web.post("/preview", self._preview),
            web.post("/act", self._do),
        ]

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = await event_stream(request)
        listener = self._hub.listen(request.query.get("job"))
        try:
            while True:
                await send(response, await self._hub.next(listener))
        except ConnectionResetError:
            return response
        finally:
            self._hub.leave(listener)

    async def _asked(self, request: web.Request) -> web.StreamResponse:
        work = work_of(self._seen(request.query.get("job", "")), request)
        return web.json_response(await asyncio.to_thread(work))

    async def _preview(self, request: web.Request) -> web.StreamResponse:
        """What an action would do; nothing is done."""
        try:
            body = await _body(request)
            work = previewed(self._seen(str(body.get("job"))), body)
            return web.json_response(await asyncio.to_thread(work))
        except EvenflowError as error:
            return web.json_response({"problem": str(error)})

    async def _do(self, request: web.Request) -> web.StreamResponse:
        assert self._act is not None  # the guard has refused the request otherwise
        try:
            body = await _body(request)
            job = str(body.get("job"))
            return web.json_response(await self._act(job, request_of(self._seen(job), body)))
        except EvenflowError as error:
            return web.json_response({"problem": str(error)})

    def _seen(self, job: str) -> Seen:
        history = self._hub.histories.get(job)
        if history is None:
            raise web.HTTPNotFound(text="no such job is known here\n")
        return history.seen


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = await request.json()
    except ValueError as error:
        raise web.HTTPBadRequest(text="the request is no JSON\n") from error
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the request is no JSON object\n")
    return body
