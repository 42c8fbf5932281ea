"""The page of a recording: what it would have shown at any time of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from ..recording.file import Recording
from ..state.errors import EvenflowError
from .asked import ASKED, Answer, work_of
from .events import event_stream, send
from .history import History, Message
from .stage_history import KEPT

FORWARD = 60
"""Views by which a page that goes forward is told only what is new; one that jumps further gets the whole."""

CURSORS = 4
"""Histories that are kept, each at the time to which a page has come."""


class Replay:
    """One recording. Each page goes its own way through it."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._lock = threading.Lock()
        self._cursors: dict[int, History] = {}

    def routes(self) -> list[web.AbstractRouteDef]:
        """What a page asks for: the newest view as an event, any other by its time."""

        async def events(request: web.Request) -> web.StreamResponse:
            response = await event_stream(request)
            await send(response, json.dumps(await asyncio.to_thread(self.message, self._recording.ended)))
            await asyncio.Event().wait()  # it has no other: the page asks for them
            return response

        async def at(request: web.Request) -> web.StreamResponse:
            time, known = _number(request, "time"), _number(request, "known")
            if time is None:
                raise web.HTTPBadRequest(text="which time?\n")
            try:
                return web.json_response(await asyncio.to_thread(self.message, time, known))
            except EvenflowError as error:
                return web.json_response({"problem": str(error)})

        async def asked(request: web.Request) -> web.StreamResponse:
            time = _number(request, "time")
            return web.json_response(await asyncio.to_thread(self._answer, self._recording.ended if time is None else time, request))

        return [web.get("/events", events), web.get("/at", at), *(web.get(f"/{name}", asked) for name in ASKED)]

    def message(self, time: float, known: float | None = None) -> Message:
        """What a page shows at `time`; only what is new if it has what was known a little before, at `known`.

        Raises SnapshotError for a view that can't be read.
        """
        with self._lock:
            told, index = self._told(time, known)
        recording = self._recording
        span = {"begin": recording.began, "end": recording.ended, "at": recording.times[index], "problem": recording.problem}
        return {**told, "link": {"state": "replay", "text": ""}, "jobs": [recording.job], "replay": span}

    def _answer(self, time: float, request: web.Request) -> Answer:
        with self._lock:
            index = self._recording.index_at(time)
            if index not in self._cursors:
                self._told(time, None)
            work = work_of(self._cursors[index].seen, request)
        return work()

    def _told(self, time: float, known: float | None) -> tuple[Message, int]:
        recording = self._recording
        index = recording.index_at(time)
        before = None if known is None else recording.index_at(known)
        if before is not None and before in self._cursors and before < index <= before + FORWARD:
            history = self._cursors.pop(before)
            told = _joined([history.add(view) for view in recording.views(before + 1, index)])
        else:
            history = self._cursors.pop(index) if index in self._cursors else self._rebuilt(index)
            told = history.whole()
        self._cursors = dict([*self._cursors.items(), (index, history)][-CURSORS:])
        return told, index

    def _rebuilt(self, index: int) -> History:
        """From what the page of that time would still have had."""
        history, times = History(self._recording.job), self._recording.times
        first = self._recording.index_at(times[index] - KEPT)
        for view in self._recording.views(first, index):
            history.take(view)
        return history


def _joined(messages: Iterable[Message]) -> Message:
    """Messages, the oldest first, as one."""
    parts: dict[str, dict[Any, Any]] = {"seconds": {}, "decisions": {}, "checkpoints": {}}
    last: Message = {}
    for message in messages:
        last = message
        for name, found in parts.items():
            found.update((entry["t" if name == "seconds" else "id"], entry) for entry in message[name])
    return {**last, **{name: list(found.values()) for name, found in parts.items()}}


def _number(request: web.Request, name: str) -> float | None:
    text = request.query.get(name)
    try:
        return None if text is None else float(text)
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"{name} is no number\n") from error
