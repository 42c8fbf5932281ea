"""Warm spares: started processes without a task, kept ready so that a new worker doesn't wait for a process.

Invariant: `count` are ready or starting whenever the cluster has room; a spare that is taken has started. It is replaced a little later,
unless it was one of the extra ones, which are meant for the workers that take them. Spares that the user didn't ask for start late, so
that a job of a few seconds has none, and nothing waits for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

ROOM_INTERVAL = 1.0
"""Seconds after which a spare for which there was no room is tried again."""

UNASKED_AFTER = 10.0
"""Seconds that a job runs before it starts spares that the user didn't ask for."""

REPLACE_AFTER = 10.0
"""Seconds from taking a spare to its replacement, whose start would take a CPU from workers that restore their checkpoint and catch up."""


class SpareProcess(Protocol):
    """The methods that a spare needs; a `WorkerProcess` has them."""

    node: str

    @property
    def lost(self) -> bool: ...
    def look(self) -> bool: ...
    def end(self) -> None: ...


P = TypeVar("P", bound=SpareProcess)


class Spares(Generic[P]):
    """The spares of one job. `start(label)` starts a process, or returns None without room. Used under the coordinator's lock.

    `after`: seconds from the first tick to the start of the first `count`, for which nothing waits; 0: at once.
    """

    def __init__(self, count: int, start: Callable[[str], P | None], after: float = 0.0) -> None:
        self._count, self._start, self._after = count, start, after
        self._begun: float | None = None
        self._extra, self._together = 0, True
        self._next = 0
        self._again = 0.0
        self.processes: list[P] = []

    def want(self, extra: int, *, together: bool = True) -> None:
        """Keep `extra` spares beyond `count` until they are taken. `together`: start them at once, otherwise one after the other."""
        self._extra, self._together, self._again = extra, together, 0.0

    @property
    def ready(self) -> int:
        """The number of spares that have started."""
        return sum(process.look() for process in self.processes)

    @property
    def complete(self) -> bool:
        """True if all spares have started that were asked for."""
        return self.ready >= self._extra + (0 if self._after else self._count)

    def take(self, allowed: Callable[[str], bool]) -> P | None:
        """Remove and return a started spare on an allowed node."""
        for process in self.processes:
            if process.look() and not process.lost and allowed(process.node):
                self.processes.remove(process)
                self._extra = max(0, self._extra - 1)
                self._again = time.monotonic() + REPLACE_AFTER
                return process
        return None

    def tick(self, allowed: Callable[[str], bool]) -> None:
        """Drop spares that are lost or on a node that is not allowed, and start others."""
        for process in [p for p in self.processes if p.lost or not allowed(p.node)]:
            self.processes.remove(process)
            process.end()
        now = time.monotonic()
        self._begun = now if self._begun is None else self._begun
        wanted = self._extra + (self._count if now >= self._begun + self._after else 0)
        for process in self.processes[wanted:]:
            self.processes.remove(process)
            process.end()
        if now < self._again:
            return
        while len(self.processes) < wanted and (self._together or self.ready == len(self.processes)):
            started = self._begin()
            if started is None:
                self._again = time.monotonic() + ROOM_INTERVAL
                return
            self.processes.append(started)

    def close(self) -> None:
        """End all spares."""
        for process in self.processes:
            process.end()
        self.processes, self._count, self._extra = [], 0, 0

    def _begin(self) -> P | None:
        self._next += 1
        return self._start(f"spare-{self._next - 1}")
