"""Resident memory of a job's workers before, during and after a move.

>>> samples = [(0.0, 100.0), (1.0, 102.0), (2.0, 140.0), (3.0, 120.0), (4.0, 121.0)]
>>> memory = Memory.around(samples, begun=1.5, ended=2.5, before=2.0)
>>> memory.before, memory.scatter, memory.peak, memory.after, memory.transient
(101.0, 2.0, 140.0, 120.5, 19.5)
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

from ..harness import machine
from ..harness.background import Background
from ..harness.errors import BenchmarkError

LAST = 1.0
"""Seconds at the end of a watch that count as after the move."""


@dataclass(frozen=True, slots=True)
class Memory:
    """MiB of all workers: median and scatter before the move, the peak during it, the median after it."""

    before: float
    scatter: float
    peak: float
    after: float

    @classmethod
    def around(cls, samples: Sequence[tuple[float, float]], begun: float, ended: float, before: float) -> Self:
        """Summarise samples (seconds, MiB) from `before` seconds before the move on. Raises BenchmarkError if a phase has no sample."""
        last = samples[-1][0] if samples else ended
        phases = ((begun - before, begun), (begun, ended), (max(ended, last - LAST), last))
        earlier, during, later = ([memory for at, memory in samples if first <= at <= end] for first, end in phases)
        if not (earlier and during and later):
            counts = f"{len(earlier)} samples before, {len(during)} during and {len(later)} after the move"
            raise BenchmarkError(f"the workers' memory has {counts}: a move must take longer than the time between two samples")
        return cls(median(earlier), max(earlier) - min(earlier), max(during), median(later))

    @property
    def transient(self) -> float:
        """The memory that the move needed beyond the workers' memory before and after it."""
        return max(0.0, self.peak - max(self.before, self.after))


class MemoryWatch(Background):
    """Resident memory of all workers below this process, sampled every 20 ms.

    `growth`: MiB a second by which the workers' trace grows, subtracted from the beginning of the watch on.
    """

    def __init__(self, growth: float) -> None:
        super().__init__(0.02, "memory")
        self._pids = machine.workers_below(os.getpid())
        self._growth, self._begun = growth, time.monotonic()
        self.samples: list[tuple[float, float]] = []

    def _step(self) -> None:
        now = time.monotonic()
        resident = sum(machine.rss_bytes(pid) for pid in self._pids) / 2**20
        self.samples.append((now, resident - self._growth * (now - self._begun)))
