"""One second of a stage, added up from its workers' windows.

A window counts for each second in proportion to their overlap, so that long and short windows give the same sums.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from math import ceil, floor

import numpy as np

from ..engine.protocol.ids import CodeVersion, WorkerId
from ..scheduler.load.window import WorkerWindow
from .heat import Loads, Owners


@dataclass(slots=True)
class WorkerUsage:
    """The work of one worker: seconds measured, of useful time and of waiting for credit; rows."""

    measured: float = 0.0
    useful: float = 0.0
    credit: float = 0.0
    rows_in: float = 0.0
    rows_out: float = 0.0

    def add(self, other: WorkerUsage) -> None:
        """Add the work of another time."""
        self.measured += other.measured
        self.useful += other.useful
        self.credit += other.credit
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out

    @property
    def busy(self) -> float:
        """The share of the time that was useful."""
        return self.useful / max(self.measured, 1e-9)

    @property
    def blocked(self) -> float:
        """The share of the time spent waiting for credit."""
        return self.credit / max(self.measured, 1e-9)


@dataclass(slots=True)
class TimeBucket:
    """A second of a stage. `load`: useful seconds per key group; `hot`: records per hot key and the worker that counted them; `records`:
    the number of records of all keys.

    `owners`: the owners of the groups at its end; None without keyed state, or while they are unknown. `codes`: the version of the code of
    each owner.
    """

    workers: dict[WorkerId, WorkerUsage] = field(default_factory=dict)
    load: Loads = field(default_factory=lambda: np.zeros(0))
    hot: dict[Hashable, tuple[float, WorkerId]] = field(default_factory=dict)
    records: float = 0.0
    owners: Owners | None = None
    codes: tuple[CodeVersion, ...] = ()

    def add(self, window: WorkerWindow, part: float, groups: int) -> None:
        """Add `part` of a window of a stage with `groups` key groups."""
        worker = self.workers.setdefault(window.worker, WorkerUsage())
        worker.measured += window.length * part
        worker.useful += window.useful * part
        worker.credit += window.wait_credit * part
        worker.rows_in += window.rows_in * part
        worker.rows_out += window.rows_out * part
        self.records += window.keyed_records * part
        if len(self.load) < groups:
            self.load = np.zeros(groups)
        if groups:
            self.load[window.groups] += window.load * part
        for key, records in window.hot_keys:
            before, _ = self.hot.get(key, (0.0, ""))
            self.hot[key] = before + records * part, window.worker

    def hottest(self, most: int) -> list[tuple[Hashable, float, WorkerId]]:
        """Return the hottest keys, with their records and the worker that counted them last."""
        found = sorted(self.hot.items(), key=lambda item: -item[1][0])[:most]
        return [(key, records, worker) for key, (records, worker) in found]


def parts(window: WorkerWindow) -> Iterator[tuple[int, float]]:
    """Yield the seconds that a window overlaps, each with its part of the window.

    >>> list(parts(WorkerWindow("count-0", start=9.5, length=2.0)))
    [(9, 0.25), (10, 0.5), (11, 0.25)]
    """
    length = max(window.length, 1e-9)
    end = window.start + length
    for second in range(floor(window.start), max(ceil(end), floor(window.start) + 1)):
        overlap = min(end, second + 1) - max(window.start, second)
        if overlap > 1e-6 * length:
            yield second, overlap / length
