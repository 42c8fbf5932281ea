"""The page of a recording: shows any time of it as the live page did."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from ..recording.file import Recording
from ..state.errors import EvenflowError
from ..views.history import History, Message
from ..views.stage_history import KEPT
from .http import event_stream, number, send_event
from .queries import QUERIES, Answer, prepared

FORWARD = 60
"""The most views by which a page goes forward incrementally; after a longer jump it gets the whole history."""

CURSORS = 4
"""Histories that are kept, each at the position of a page."""


class Replay:
    """The page of one recording. Each tab has its own position in it."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._lock = threading.Lock()
        self._cursors: dict[int, History] = {}

    def routes(self) -> list[web.AbstractRouteDef]:
        """Return the routes of the page's requests: the newest view as an event, any other by its time."""

        async def events(request: web.Request) -> web.StreamResponse:
            response = await event_stream(request)
            await send_event(response, json.dumps(await asyncio.to_thread(self.message, self._recording.ended)))
            await asyncio.Event().wait()  # there are no more events: the page requests other times
            return response

        async def at(request: web.Request) -> web.StreamResponse:
            time, known = number(request, "time"), number(request, "known")
            if time is None:
                raise web.HTTPBadRequest(text="time is missing\n")
            try:
                return web.json_response(await asyncio.to_thread(self.message, time, known))
            except EvenflowError as error:
                return web.json_response({"problem": str(error)})

        async def query(request: web.Request) -> web.StreamResponse:
            time = number(request, "time")
            return web.json_response(await asyncio.to_thread(self._answer, self._recording.ended if time is None else time, request))

        return [web.get("/events", events), web.get("/at", at), *(web.get(f"/{name}", query) for name in QUERIES)]

    def message(self, time: float, known: float | None = None) -> Message:
        """Return the message of the page at `time`; only the changes if the page has the message of a short time before, `known`.

        Raises SnapshotError for a view that can't be read.
        """
        with self._lock:
            message, index = self._message(time, known)
        recording = self._recording
        span = {"begin": recording.began, "end": recording.ended, "at": recording.times[index], "problem": recording.problem}
        return {**message, "link": {"state": "replay", "text": ""}, "jobs": [recording.job], "replay": span}

    def _answer(self, time: float, request: web.Request) -> Answer:
        with self._lock:
            index = self._recording.index_at(time)
            if index not in self._cursors:
                self._message(time, None)
            work = prepared(self._cursors[index].snapshots, request.path.strip("/"), request.query.get("operator"))
        return work()

    def _message(self, time: float, known: float | None) -> tuple[Message, int]:
        recording = self._recording
        index = recording.index_at(time)
        before = None if known is None else recording.index_at(known)
        if before is not None and before in self._cursors and before < index <= before + FORWARD:
            history = self._cursors.pop(before)
            message = _joined([history.add(view) for view in recording.views(before + 1, index)])
        else:
            history = self._cursors.pop(index) if index in self._cursors else self._rebuilt(index)
            message = history.whole()
        self._cursors = dict([*self._cursors.items(), (index, history)][-CURSORS:])
        return message, index

    def _rebuilt(self, index: int) -> History:
        """Rebuild the history from the views that the live page still had at that time."""
        history, times = History(self._recording.job), self._recording.times
        first = self._recording.index_at(times[index] - KEPT)
        for view in self._recording.views(first, index):
            history.update(view)
        return history


def _joined(messages: Iterable[Message]) -> Message:
    """Join messages, the oldest first."""
    parts: dict[str, dict[Any, Any]] = {"seconds": {}, "decisions": {}, "checkpoints": {}}
    last: Message = {}
    for message in messages:
        last = message
        for name, found in parts.items():
            found.update((entry["t" if name == "seconds" else "id"], entry) for entry in message[name])
    return {**last, **{name: list(found.values()) for name, found in parts.items()}}
