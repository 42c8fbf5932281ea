"""Operators that wait for each record before they take it, so that more workers get more done on two cores, as on a machine each.

An operator's true rate is one over its wait, less the engine's own work.

>>> from ...engine.operators.rows.map_batches import MapBatches
>>> waiting(MapBatches(len), 0.5).describe()
'len, waits 500 ms a record'
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ...engine.batch import Batch
from ...engine.columns import Columns
from ...engine.context import Context, Emit
from ...engine.operators.aggregation.aggregate_sessions import AggregateSessions
from ...engine.operators.aggregation.aggregate_windows import AggregateWindows
from ...engine.operators.base import Operator
from ...engine.operators.joins.join import Join
from ...engine.operators.joins.window_join import WindowJoin
from ...engine.operators.rows.map_batches import MapBatches


class Waiting(Operator):
    """`wait`: seconds for each record."""

    wait = 0.0

    def open(self, context: Context) -> Any:
        instance: Any = super().open(context)  # type: ignore[safe-super]  # the operator itself comes behind this class
        process = instance.process

        def waiting_process(batch: Batch, emit: Emit) -> None:
            time.sleep(self.wait * batch.num_rows)
            process(batch, emit)

        instance.process = waiting_process
        return instance

    def knowing(self, inputs: Sequence[Columns]) -> Any:
        known: Any = super().knowing(inputs)
        object.__setattr__(known, "wait", self.wait)  # a copy of the operator's fields, of which this is none
        return known

    def describe(self) -> str:
        return f"{super().describe()}, waits {self.wait * 1000:g} ms a record"


class WaitingMapBatches(Waiting, MapBatches):
    """See `Waiting`."""


class WaitingJoin(Waiting, Join):
    """See `Waiting`."""


class WaitingWindowJoin(Waiting, WindowJoin):
    """See `Waiting`."""


class WaitingWindows(Waiting, AggregateWindows):
    """See `Waiting`."""


class WaitingSessions(Waiting, AggregateSessions):
    """See `Waiting`."""


KINDS: dict[type[Operator], type[Waiting]] = {
    MapBatches: WaitingMapBatches, Join: WaitingJoin, WindowJoin: WaitingWindowJoin, AggregateWindows: WaitingWindows,
    AggregateSessions: WaitingSessions,
}  # fmt: skip


def waiting(operator: Any, seconds: float) -> Waiting:
    """The same operator, which waits `seconds` for each record."""
    copied = KINDS[type(operator)](**{field.name: getattr(operator, field.name) for field in fields(operator)})
    object.__setattr__(copied, "wait", seconds)  # plans keep operators, which are frozen
    return copied
