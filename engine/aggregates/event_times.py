"""The earliest or the latest event time of a group's rows: the bounds of sessions.

>>> batch = Batch(pa.record_batch({"item": [1, 2, 3]}), np.array([30, 10, 20]))
>>> accumulator = EventTimeBound(latest=True).bind(batch.rows.schema, "step")
>>> accumulator.finish(accumulator.partial(batch, np.array([0, 1, 1]), 2)).to_pylist()
[30, 20]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import Batch
from ..errors import RecordError
from .base import Accumulator, AggregateFunction, Codes, Parts


@dataclass(frozen=True, slots=True)
class EventTimeBound(AggregateFunction):
    """The aggregate of the earliest or the latest event time, in microseconds."""

    latest: bool
    column: str | None = None

    def describe(self) -> str:
        return "the latest event time" if self.latest else "the earliest event time"

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        return EventTimeBoundAccumulator(operator, self.latest)


class EventTimeBoundAccumulator(Accumulator):
    """The earliest or latest event time. Parts: (time,), the worst possible one for a group without rows."""

    part_types = (pa.int64(),)
    output_type = pa.int64()

    def __init__(self, operator: str, latest: bool) -> None:
        self.operator = operator
        self._nothing = -(2**63) if latest else 2**63 - 1
        self._better: Any = np.maximum if latest else np.minimum

    def empty(self, n: int) -> Parts:
        return (np.full(n, self._nothing, np.int64),)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        if batch.times is None:
            raise RecordError(self.operator, "it has windows, but its stream has no event time: give the source event_time=")
        return self.combine((batch.times,), codes, groups)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        (times,) = self.empty(groups)
        self._better.at(times, codes, parts[0])
        return (times,)

    def merge(self, left: Parts, right: Parts) -> Parts:
        return (self._better(left[0], right[0]),)

    def finish(self, parts: Parts) -> pa.Array:
        return pa.array(parts[0], pa.int64())
