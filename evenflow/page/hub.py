"""The histories of all jobs, and the browsers that listen: messages about a job go to the pages that show it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from ..views.history import History, Message
from .messages import Message as FollowerMessage
from .messages import Unlinked, Viewed

KEPT = 20
"""Jobs that are kept, including those that have ended."""

BACKLOG = 30
"""Messages that may wait for a browser. A browser that is further behind gets the whole history instead."""


class Listener:
    """A browser tab that shows `job`, or the first job."""

    def __init__(self, job: str | None) -> None:
        self.job = job
        self.messages = asyncio.Queue[str](BACKLOG)
        self.behind = True
        """True if the whole history has to be sent next."""

    def forget(self) -> None:
        """Discard the messages that wait."""
        while not self.messages.empty():
            self.messages.get_nowait()


class Hub:
    """The histories of all jobs and the tabs that show them. `facts`: further fields of every message."""

    def __init__(self, job: str | None = None, **facts: Any) -> None:
        self._facts = facts
        self.histories: dict[str, History] = {} if job is None else {job: History(job)}
        self._listeners: set[Listener] = set()
        self._trouble = "" if job is not None else "no job runs on the cluster yet"

    def receive(self, message: FollowerMessage) -> None:
        """Take a message of the follower, and pass its news on to the tabs."""
        if isinstance(message, Viewed):
            is_new = message.job not in self.histories
            if is_new:
                self._make_room()
                self.histories[message.job] = History(message.job)
            self._publish(message.job, self.histories[message.job].add(message.view), is_new=is_new)
        elif isinstance(message, Unlinked):
            self._trouble = message.text
            for name, history in self.histories.items():
                if message.job in ("", name) and (message.state == "ended" or history.link[0] != "ended"):
                    self._publish(name, history.unlinked(message.state, message.text))
            if not self.histories:
                self._publish("", {"job": "", "link": {"state": "waiting", "text": message.text}})

    def listen(self, job: str | None) -> Listener:
        """Add a tab."""
        listener = Listener(job)
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Remove a tab."""
        self._listeners.discard(listener)

    async def next(self, listener: Listener) -> str:
        """Wait for the next message for a tab, as JSON; the first is the whole history."""
        text = "" if listener.behind else await listener.messages.get()
        if listener.behind:
            listener.behind = False
            listener.forget()
            return self._json(self._whole(listener))
        return text

    def _make_room(self) -> None:
        """Forget the oldest ended jobs, so that there is room for another job."""
        ended = [name for name, history in self.histories.items() if history.link[0] == "ended"]
        for name in ended[: max(0, len(self.histories) + 1 - KEPT)]:
            del self.histories[name]

    def _whole(self, listener: Listener) -> Message:
        live = (name for name, history in self.histories.items() if history.link[0] == "live")
        name = listener.job or next(live, next(iter(self.histories), ""))
        if name in self.histories:
            listener.job = name
            return self.histories[name].whole()
        return {"job": name, "whole": True, "link": {"state": "waiting", "text": self._trouble}}

    def _publish(self, job: str, message: Message, *, is_new: bool = False) -> None:
        text = self._json(message)
        for listener in self._listeners:
            if listener.job is None or listener.messages.full():
                listener.behind = True  # there was no job to show when it arrived, or it is too slow
                listener.forget()
            if listener.behind or listener.job == job:
                listener.messages.put_nowait(text)
            elif is_new:
                listener.messages.put_nowait(self._json({}))

    def _json(self, message: Message) -> str:
        return json.dumps({**message, **self._facts, "jobs": list(self.histories)}, default=str, allow_nan=False)
