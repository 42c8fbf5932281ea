"""What is known of all jobs, and the browsers that listen: what is heard of a job goes to the pages that show it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from .heard import Heard, Unlinked, Viewed
from .history import History, Message

KEPT = 20
"""Jobs that are kept, those that have ended too."""

BACKLOG = 30
"""Messages that may wait for a browser. One that is further behind gets the whole history instead."""


class Listener:
    """One browser tab, which shows `job`, or the first job that there is."""

    def __init__(self, job: str | None) -> None:
        self.job = job
        self.messages = asyncio.Queue[str](BACKLOG)
        self.behind = True
        """Whether the whole history is to be sent next."""

    def forget(self) -> None:
        """What waits is no longer needed."""
        while not self.messages.empty():
            self.messages.get_nowait()


class Hub:
    """`hear` what the follower tells; `listen` and `next` are for tabs. `facts`: further fields of every message."""

    def __init__(self, job: str | None = None, **facts: Any) -> None:
        self._facts = facts
        self.histories: dict[str, History] = {} if job is None else {job: History(job)}
        self._listeners: set[Listener] = set()
        self._trouble = "" if job is not None else "no job runs on the cluster yet"

    def hear(self, heard: Heard) -> None:
        """A view, or why there is none."""
        if isinstance(heard, Viewed):
            is_new = heard.job not in self.histories
            if is_new:
                self._make_room()
                self.histories[heard.job] = History(heard.job)
            self._tell(heard.job, self.histories[heard.job].add(heard.view), is_new=is_new)
        elif isinstance(heard, Unlinked):
            self._trouble = heard.text
            for name, history in self.histories.items():
                if heard.job in ("", name) and (heard.state == "ended" or history.link[0] != "ended"):
                    self._tell(name, history.unlinked(heard.state, heard.text))
            if not self.histories:
                self._tell("", {"job": "", "link": {"state": "waiting", "text": heard.text}})

    def listen(self, job: str | None) -> Listener:
        """A tab more."""
        listener = Listener(job)
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """A tab less."""
        self._listeners.discard(listener)

    async def next(self, listener: Listener) -> str:
        """The next message for a tab, as JSON; the first is the whole history."""
        text = "" if listener.behind else await listener.messages.get()
        if listener.behind:
            listener.behind = False
            listener.forget()
            return self._json(self._whole(listener))
        return text

    def _make_room(self) -> None:
        """For one job more: the first that have ended are forgotten."""
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

    def _tell(self, job: str, message: Message, *, is_new: bool = False) -> None:
        text = self._json(message)
        for listener in self._listeners:
            if listener.job is None or listener.messages.full():
                listener.behind = True  # there was no job to show when it came, or it is too slow
                listener.forget()
            if listener.behind or listener.job == job:
                listener.messages.put_nowait(text)
            elif is_new:
                listener.messages.put_nowait(self._json({}))

    def _json(self, message: Message) -> str:
        return json.dumps({**message, **self._facts, "jobs": list(self.histories)}, default=str, allow_nan=False)
