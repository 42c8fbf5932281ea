"""A look at the cluster beside the reading: where partitions end, which ones are new, and whether topics are still the same.

A reader never waits for a broker: it asks for a look and goes on; a thread asks the broker, and its answer is there at some later poll.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from ...engine.errors import ConnectorError, shown
from .offsets import Offsets
from .reading import Reading
from .topics import Topics

LOOK_SECONDS = 5.0
"""The longest wait for a broker's answer to a look."""

UNREACHABLE = 300.0
"""Seconds without any answer after which the source gives up: a broker that starts again is back long before."""

SHRUNK = 3
"""Looks in a row that must find a partition shorter than what was read of it: a new leader may say less for a moment."""


@dataclass(frozen=True, slots=True)
class Look:
    """`asked`: when (seconds of `monotonic`). `ends`: of the partitions that were asked for; none if there was no answer.

    `found`: new partitions of this reader, with their first offsets. `error`: the reason why the source can't go on.
    """

    asked: float
    ends: Mapping[int, int] = field(default_factory=dict)
    found: Mapping[int, int] = field(default_factory=dict)
    error: ConnectorError | None = None


class Watch(Protocol):
    """What a reader needs of it."""

    def ask(self, read: Mapping[int, int]) -> None:
        """Look at these partitions, which have been read up to these offsets."""

    def answer(self) -> Look | None:
        """The look that was asked for, once; None as long as it isn't there."""

    def close(self) -> None:
        """Look no more. Doesn't wait."""


class ClusterWatch:
    """Looks in a thread, with a client of its own."""

    def __init__(self, reading: Reading, index: int, parallelism: int) -> None:
        self._reading, self._index, self._parallelism = reading, index, parallelism
        self._asked: Mapping[int, int] = {}
        self._answer: Look | None = None
        self._wake, self._closed = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name=f"{reading.operator}-watch", daemon=True)
        self._thread.start()

    def ask(self, read: Mapping[int, int]) -> None:
        self._asked = read
        self._wake.set()

    def answer(self) -> Look | None:
        answer = self._answer
        if answer is not None:  # the thread is done, until it is asked again
            self._answer = None
        return answer

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def _run(self) -> None:
        looking = _Looking(self._reading, self._index, self._parallelism)
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closed:
                return
            asked = monotonic()
            try:
                self._answer = looking.look(self._asked)
            except Exception as error:  # noqa: BLE001 -- without an answer the reader would go on with what it knew last
                problem = ConnectorError(f"operator `{self._reading.operator}`: the cluster can't be looked at: {shown(error)}")
                self._answer = Look(asked, error=problem)


class _Looking:
    """The thread's own: what it remembers from look to look."""

    def __init__(self, reading: Reading, index: int, parallelism: int) -> None:
        self._reading, self._index, self._parallelism = reading, index, parallelism
        self._offsets = Offsets(reading.cluster, reading.topics, LOOK_SECONDS)
        self._answered = self._discovered = monotonic()
        self._shrunk: dict[int, int] = {}

    def look(self, read: Mapping[int, int]) -> Look:
        asked = monotonic()
        found: dict[int, int] = {}
        try:
            if self._reading.endless and asked - self._discovered >= self._reading.discover_every:
                found = self._new(read)
                self._discovered = asked
            ends = self._offsets.ends(read)
        except ConnectorError as error:
            gone = asked - self._answered > UNREACHABLE
            return Look(asked, found=found, error=_given_up(self._reading.operator, error) if gone else None)
        self._answered = asked
        return Look(asked, ends, found, self._made_anew(read, ends))

    def _new(self, read: Mapping[int, int]) -> dict[int, int]:
        """The first offsets of this reader's partitions that it doesn't read yet."""
        own = [o for o in self._offsets.partitions() if Topics.are_of(o, self._index, self._parallelism)]
        return self._offsets.firsts(ordinal for ordinal in own if ordinal not in read)

    def _made_anew(self, read: Mapping[int, int], ends: Mapping[int, int]) -> ConnectorError | None:
        """The error if a topic is another than the one that was read."""
        self._shrunk = {o: self._shrunk.get(o, 0) + 1 for o, end in ends.items() if end < read[o]}
        for ordinal, times in self._shrunk.items():
            if times >= SHRUNK:
                return made_anew(self._reading, ordinal, read[ordinal], ends[ordinal])
        return None


def made_anew(reading: Reading, ordinal: int, offset: int, end: int) -> ConnectorError:
    """The error for a partition that ends before what was read of it."""
    return ConnectorError(
        f"operator `{reading.operator}`: {reading.topics.shown(ordinal)} ends at offset {end}, but was read up to {offset}: the topic was "
        "deleted and made anew, or has lost records; start without the checkpoint to read it from its beginning"
    )


def _given_up(operator: str, error: ConnectorError) -> ConnectorError:
    problem = str(error).removeprefix(f"operator `{operator}`: ")
    return ConnectorError(f"operator `{operator}`: no answer for {UNREACHABLE:g} s: {problem}")
