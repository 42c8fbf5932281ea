"""Warm spares: started processes without a task, kept ready so that a new worker doesn't wait for a process.

Invariant: `count` are there or on their way whenever the cluster has room; who is taken has started, and another is started in its place
a little later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

ROOM_INTERVAL = 1.0
"""Seconds after which a spare for which there was no room is tried again."""

REPLACE_AFTER = 3.0
"""Seconds after one was taken until another is started: its start would take the CPU from those that go back to their checkpoint."""


class Process(Protocol):
    """What a spare must be; a `WorkerProcess` is."""

    node: str

    @property
    def lost(self) -> bool: ...
    def look(self) -> bool: ...
    def end(self) -> None: ...


P = TypeVar("P", bound=Process)


class Spares(Generic[P]):
    """`start(label)` starts a process, or gives None where there is no room. Used under the coordinator's lock."""

    def __init__(self, count: int, start: Callable[[str], P | None]) -> None:
        self._count, self._start = count, start
        self._extra = 0
        self._next = 0
        self._again = 0.0
        self.processes: list[P] = []

    def want(self, extra: int) -> None:
        """Keep `extra` spares beyond `count` for a while."""
        self._extra, self._again = extra, 0.0

    @property
    def ready(self) -> int:
        """How many have started."""
        return sum(process.look() for process in self.processes)

    @property
    def complete(self) -> bool:
        """Whether all that are wanted have started."""
        return self.ready >= self._count + self._extra

    def take(self, allowed: Callable[[str], bool]) -> P | None:
        """One that has started, on an allowed node; it is a spare no more."""
        for process in self.processes:
            if process.look() and not process.lost and allowed(process.node):
                self.processes.remove(process)
                self._again = time.monotonic() + REPLACE_AFTER
                return process
        return None

    def tick(self, allowed: Callable[[str], bool]) -> None:
        """Drop spares that are lost or on a node that is not allowed, and start others."""
        for process in [p for p in self.processes if p.lost or not allowed(p.node)]:
            self.processes.remove(process)
            process.end()
        for process in self.processes[self._count + self._extra :]:
            self.processes.remove(process)
            process.end()
        if time.monotonic() < self._again:
            return
        while len(self.processes) < self._count + self._extra:
            started = self._begin()
            if started is None:
                self._again = time.monotonic() + ROOM_INTERVAL
                return
            self.processes.append(started)

    def close(self) -> None:
        """End them all."""
        for process in self.processes:
            process.end()
        self.processes, self._count, self._extra = [], 0, 0

    def _begin(self) -> P | None:
        self._next += 1
        return self._start(f"spare-{self._next - 1}")
