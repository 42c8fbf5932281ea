"""Regular looks at the cluster, concurrent with reading: the ends of partitions, new partitions, and recreated topics.

A reader never waits for a broker: it requests a look and continues; a thread asks the broker, and a later poll takes its answer.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from ....engine.errors import ConnectorError, shown
from .read_plan import ReadPlan
from .topics import Offsets, Topics

LOOK_SECONDS = 5.0
"""The longest wait for a broker's answer to a look."""

UNREACHABLE = 300.0
"""Seconds without any answer after which the source fails: a restarting broker answers long before."""

SHRUNK = 3
"""Consecutive looks that must find a partition shorter than what was read of it: a new leader may report less for a moment."""


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look. `requested`: when it was requested (seconds of `monotonic`). `ends`: of the requested partitions;
    empty without an answer.

    `found`: new partitions of this reader, with their first offsets. `error`: the reason why the source can't continue.
    """

    requested: float
    ends: Mapping[int, int] = field(default_factory=dict)
    found: Mapping[int, int] = field(default_factory=dict)
    error: ConnectorError | None = None


class PartitionWatch(Protocol):
    """A watch over the cluster as its reader needs it."""

    def ask(self, read: Mapping[int, int]) -> None:
        """Request a look at these partitions, which have been read up to these offsets."""

    def answer(self) -> Look | None:
        """Return the requested look, once; None until it is complete."""

    def close(self) -> None:
        """Stop looking, without waiting."""


class ClusterWatch:
    """A watch that looks in a thread, with its own client."""

    def __init__(self, plan: ReadPlan, index: int, parallelism: int) -> None:
        self._plan, self._index, self._parallelism = plan, index, parallelism
        self._requested: Mapping[int, int] = {}
        self._answer: Look | None = None
        self._wake, self._closed = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name=f"{plan.operator}-watch", daemon=True)
        self._thread.start()

    def ask(self, read: Mapping[int, int]) -> None:
        self._requested = read
        self._wake.set()

    def answer(self) -> Look | None:
        answer = self._answer
        if answer is not None:  # the thread is done, until it is requested again
            self._answer = None
        return answer

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def _run(self) -> None:
        looking = _Looking(self._plan, self._index, self._parallelism)
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closed:
                return
            requested = monotonic()
            try:
                self._answer = looking.look(self._requested)
            except Exception as error:  # noqa: BLE001 -- the reader must get an answer, or it would continue with old knowledge
                problem = ConnectorError(f"operator `{self._plan.operator}`: the cluster can't be examined: {shown(error)}")
                self._answer = Look(requested, error=problem)


class _Looking:
    """State of the thread that is kept from look to look."""

    def __init__(self, plan: ReadPlan, index: int, parallelism: int) -> None:
        self._plan, self._index, self._parallelism = plan, index, parallelism
        self._offsets = Offsets(plan.cluster, plan.topics, LOOK_SECONDS)
        self._answered = self._discovered = monotonic()
        self._shrunk: dict[int, int] = {}

    def look(self, read: Mapping[int, int]) -> Look:
        requested = monotonic()
        found: dict[int, int] = {}
        try:
            if self._plan.endless and requested - self._discovered >= self._plan.discover_every:
                found = self._new(read)
                self._discovered = requested
            ends = self._offsets.ends(read)
        except ConnectorError as error:
            gone = requested - self._answered > UNREACHABLE
            return Look(requested, found=found, error=_given_up(self._plan.operator, error) if gone else None)
        self._answered = requested
        return Look(requested, ends, found, self._recreated(read, ends))

    def _new(self, read: Mapping[int, int]) -> dict[int, int]:
        """Return the first offsets of this reader's partitions that it doesn't read yet."""
        own = [o for o in self._offsets.partitions() if Topics.belongs_to(o, self._index, self._parallelism)]
        return self._offsets.firsts(ordinal for ordinal in own if ordinal not in read)

    def _recreated(self, read: Mapping[int, int], ends: Mapping[int, int]) -> ConnectorError | None:
        """Return the error if a topic was recreated."""
        self._shrunk = {o: self._shrunk.get(o, 0) + 1 for o, end in ends.items() if end < read[o]}
        for ordinal, times in self._shrunk.items():
            if times >= SHRUNK:
                return recreated(self._plan, ordinal, read[ordinal], ends[ordinal])
        return None


def recreated(plan: ReadPlan, ordinal: int, offset: int, end: int) -> ConnectorError:
    """Return the error for a partition that ends before the offset up to which it was read."""
    return ConnectorError(
        f"operator `{plan.operator}`: {plan.topics.shown(ordinal)} ends at offset {end}, but was read up to {offset}: the topic was "
        "deleted and recreated, or has lost records; start without the checkpoint to read it from its beginning"
    )


def _given_up(operator: str, error: ConnectorError) -> ConnectorError:
    problem = str(error).removeprefix(f"operator `{operator}`: ")
    return ConnectorError(f"operator `{operator}`: no answer for {UNREACHABLE:g} s: {problem}")
