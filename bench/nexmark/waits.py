"""Operators that wait for each record before they process it, so that more workers get more done on two cores.

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
    """An operator that waits `wait` seconds for each record."""

    wait = 0.0

    def open(self, context: Context) -> Any:
        instance: Any = super().open(context)  # type: ignore[safe-super]  # the operator itself follows in the method resolution order
        process = instance.process

        def waiting_process(batch: Batch, emit: Emit) -> None:
            time.sleep(self.wait * batch.num_rows)
            process(batch, emit)

        instance.process = waiting_process
        return instance

    def knowing(self, inputs: Sequence[Columns]) -> Any:
        known: Any = super().knowing(inputs)
        object.__setattr__(known, "wait", self.wait)  # the copy has the operator's fields only
        return known

    def describe(self) -> str:
        return f"{super().describe()}, waits {self.wait * 1000:g} ms a record"


class _WaitingMapBatches(Waiting, MapBatches): ...


class _WaitingJoin(Waiting, Join): ...


class _WaitingWindowJoin(Waiting, WindowJoin): ...


class _WaitingAggregateWindows(Waiting, AggregateWindows): ...


class _WaitingAggregateSessions(Waiting, AggregateSessions): ...


KINDS: dict[type[Operator], type[Waiting]] = {
    MapBatches: _WaitingMapBatches,
    Join: _WaitingJoin,
    WindowJoin: _WaitingWindowJoin,
    AggregateWindows: _WaitingAggregateWindows,
    AggregateSessions: _WaitingAggregateSessions,
}
"""The waiting class of each kind of operator."""


def waiting(operator: Any, seconds: float) -> Waiting:
    """Return a copy of the operator that waits `seconds` for each record."""
    copied = KINDS[type(operator)](**{field.name: getattr(operator, field.name) for field in fields(operator)})
    object.__setattr__(copied, "wait", seconds)  # operators are frozen
    return copied
