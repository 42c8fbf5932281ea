"""What a stage did in one second, added up from its workers' windows.

A window counts for each second by the part of it that lies in that second, so that long and short windows give the same sums.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from math import ceil, floor

import numpy as np

from ..engine.protocol.ids import WorkerId
from ..scheduler.load.window import WorkerWindow
from .heat import Loads, Owners


@dataclass(slots=True)
class WorkerSecond:
    """Of one worker: seconds of useful time, of waiting for credit, and that were measured; rows."""

    measured: float = 0.0
    useful: float = 0.0
    credit: float = 0.0
    rows_in: float = 0.0
    rows_out: float = 0.0


@dataclass(slots=True)
class Second:
    """`load`: useful seconds per key group; `hot`: records per hot key and the worker that counted them; `records`: of all keys.

    `owners`: who owned the groups at its end; None without keyed state, or before it is known.
    """

    workers: dict[WorkerId, WorkerSecond] = field(default_factory=dict)
    load: Loads = field(default_factory=lambda: np.zeros(0))
    hot: dict[Hashable, tuple[float, WorkerId]] = field(default_factory=dict)
    records: float = 0.0
    latencies: list[float] = field(default_factory=list)
    owners: Owners | None = None

    def add(self, window: WorkerWindow, part: float, groups: int) -> None:
        """`part` of the window lies in this second; the stage has that many key groups."""
        worker = self.workers.setdefault(window.worker, WorkerSecond())
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
        """Its hottest keys, with their records and the worker that counted them last."""
        found = sorted(self.hot.items(), key=lambda item: -item[1][0])[:most]
        return [(key, records, worker) for key, (records, worker) in found]


def parts(window: WorkerWindow) -> Iterator[tuple[int, float]]:
    """The seconds in which a window lies, each with the part of the window that lies in it.

    >>> list(parts(WorkerWindow("count-0", start=9.5, length=2.0)))
    [(9, 0.25), (10, 0.5), (11, 0.25)]
    """
    length = max(window.length, 1e-9)
    end = window.start + length
    for second in range(floor(window.start), max(ceil(end), floor(window.start) + 1)):
        overlap = min(end, second + 1) - max(window.start, second)
        if overlap > 1e-6 * length:
            yield second, overlap / length
