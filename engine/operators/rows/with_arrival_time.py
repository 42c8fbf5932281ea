"""The operator `with_arrival_time`: the event time of a row is the time at which it arrives here.

The watermark is the present, also while no rows arrive. Results aren't repeatable: a row that is read again after a recovery has
another time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...batch import Batch
from ...context import Context, Emit
from ...needed import Needed
from ...protocol.elements import MIN_TIME
from ..own_time import OwnTime, OwnTimeInstance


@dataclass(frozen=True, eq=False)
class WithArrivalTime(OwnTime):
    """An operator that assigns the present to all rows of a batch."""

    ticks = True

    def open(self, context: Context) -> WithArrivalTimeInstance:
        return WithArrivalTimeInstance(context)

    def needs(self, wanted: Needed | None) -> Needed | None:
        return wanted

    def describe(self) -> str:
        return "not repeatable after a recovery"


class WithArrivalTimeInstance(OwnTimeInstance):
    """An instance that remembers the time of its last row or tick."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._reached = MIN_TIME

    @property
    def watermark(self) -> int:
        return self._reached

    def restore(self, watermark: int) -> None:
        self._reached = max(self._reached, watermark)  # rows must not be late because this clock is behind that of the lost worker

    def tick(self, emit: Emit) -> None:
        self._reached = max(self._reached, self.context.now())

    def process(self, batch: Batch, emit: Emit) -> None:
        self.tick(emit)
        emit(Batch(batch.rows, np.full(batch.num_rows, self._reached, np.int64)))
