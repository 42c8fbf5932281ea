"""The lag of a job's sources: the records that they have not read, and how long ago the oldest of these became available.

A reader at position p that knows of `lag` unread records knows the end of its input: p + lag. The times at which it saw each end
tell when the input reached position p: since then the next record waits. This needs no event time and no clock of the records'
origin.

Invariant: seconds are exact within a window if the input was observed when it passed the position, and a lower bound if that was
before.

>>> from evenflow.engine.source import SplitFigures
>>> lags = SourceLags()
>>> for second in range(4):  # 100 records a second arrive, and 25 are read
...     split = SplitFigures("0", lag=75 * second, position=25 * second)
...     lags.add(WorkerWindow(WorkerId("read-0"), start=second - 1.0, length=1.0, splits=(split,)))
>>> lags.by_operator(now=3.0)
{'read': Lag(records=225, seconds=2.25)}
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container
from dataclasses import dataclass, field
from typing import NamedTuple

from ...engine.protocol.ids import WorkerId, stage_of
from .window import WorkerWindow

MOST_POINTS = 512
"""The observed ends of one input that are kept; older ones become sparser."""

KEPT_SECONDS = 600.0
"""The age up to which ends before the position are kept: after a restart a source reads them again."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of one source: `records` that it has not read, `seconds` since the oldest of these became available, at least."""

    records: int
    seconds: float


class _Key(NamedTuple):
    """An input: a split of an operator, or all that one of its workers reads if the source doesn't tell splits."""

    operator: str
    split: str = ""
    worker: str = ""


@dataclass(slots=True)
class _Input:
    """The state of one input. `worker`: the one that reads it now. `times`, `ends`: the ends that were observed, and when."""

    worker: WorkerId
    position: int = 0
    lag: int = 0
    times: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def note(self, at: float, position: int, lag: int) -> None:
        end = position + lag
        if self.ends and end < self.ends[-1]:  # a recreated topic, or the worker reads something else now
            self.times.clear()
            self.ends.clear()
        if len(self.ends) > 1 and self.ends[-2] == self.ends[-1] == end:
            self.times[-1] = at
        else:
            self.times.append(at)
            self.ends.append(end)
        self.position, self.lag = position, lag
        self._forget(at - KEPT_SECONDS)

    def seconds(self, now: float) -> float:
        if not self.lag:
            return 0.0
        after = bisect_right(self.ends, self.position)
        if not after:
            return max(0.0, now - self.times[0])
        (begin, end), (first, last) = self.times[after - 1 : after + 1], self.ends[after - 1 : after + 1]
        return max(0.0, now - (begin + (end - begin) * (self.position - first) / (last - first)))

    def _forget(self, before: float) -> None:
        """Forget ends that no position can need, and every second one if too many are left."""
        old = min(bisect_right(self.times, before), bisect_right(self.ends, self.position)) - 1
        if old > MOST_POINTS // 4:
            del self.times[:old], self.ends[:old]
        if len(self.ends) > MOST_POINTS:
            del self.times[1:-1:2], self.ends[1:-1:2]


class SourceLags:
    """The lags of the sources of one job, by the windows of their workers."""

    def __init__(self) -> None:
        self._inputs: dict[_Key, _Input] = {}

    def follow(self, workers: Container[WorkerId]) -> None:
        """Forget the inputs of workers that have left."""
        self._inputs = {key: known for key, known in self._inputs.items() if known.worker in workers}

    def restart(self) -> None:
        """Begin another attempt: sources read from their checkpointed positions, and their workers count rows from there."""
        self._inputs = {key: known for key, known in self._inputs.items() if key.split}

    def add(self, window: WorkerWindow) -> None:
        """Add a window of a worker; it counts if the worker reads a source that knows its lag."""
        operator, at = stage_of(window.worker), window.start + window.length
        told = {
            _Key(operator, split.split): (split.position, split.lag)
            for split in window.splits
            if split.lag is not None and split.position is not None
        }
        if not told and window.backlog is not None:
            whole = _Key(operator, worker=window.worker)
            before = self._inputs.get(whole)
            told[whole] = (0 if before is None else before.position) + window.rows_in, window.backlog
        for key in [key for key, known in self._inputs.items() if known.worker == window.worker and key not in told]:
            del self._inputs[key]
        for key, (position, lag) in told.items():
            known = self._inputs.setdefault(key, _Input(window.worker))
            known.worker = window.worker
            known.note(at, position, lag)

    def by_operator(self, now: float) -> dict[str, Lag]:
        """Return the lag of each source that knows it: all records, and the seconds of its input that is furthest behind."""
        found: dict[str, Lag] = {}
        for key, known in self._inputs.items():
            before = found.get(key.operator, Lag(0, 0.0))
            found[key.operator] = Lag(before.records + known.lag, max(before.seconds, known.seconds(now)))
        return found
