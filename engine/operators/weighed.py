"""Functions of rows over rows with weights: the function sees the rows without their weights, those of each weight separately.

Invariant: a batch of rows with weights gives one batch, so that what is taken back and what is added stay together. The function
must return the same for equal rows at any time, because a row that is taken back was added long ago.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..batch import Batch
from ..columns import Columns
from ..context import Context, Emit
from ..dropped_records import DroppedRecord
from ..functions.measures import Measured
from ..functions.running_call import RunningCall
from ..weights import WEIGHT, weights_of, with_weight, without_weights
from .base import Operator, OperatorInstance
from .function import FunctionOperator


@dataclass(frozen=True, eq=False)
class Weighed(Operator):
    """The operator `of` for rows with weights."""

    of: FunctionOperator
    ports: tuple[str, ...] = ("out",)

    def weighed(self) -> Operator:
        return self

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return self.of.known_columns(inputs).having({WEIGHT: pa.int64()})

    def open(self, context: Context) -> WeighedInstance:
        return WeighedInstance(context, self.of.open(context))

    def describe(self) -> str:
        return self.of.describe()


class WeighedInstance(OperatorInstance):
    """An instance around that of the operator."""

    def __init__(self, context: Context, of: OperatorInstance) -> None:
        super().__init__(context)
        self._of = of

    def process(self, batch: Batch, emit: Emit) -> None:
        weights = weights_of(batch.rows, self.context.name)
        rows = batch.with_rows(without_weights(batch.rows))
        emitted: dict[str, list[Batch]] = {}
        for weight in (-1, 1):
            some = weights == weight
            if some.any():
                self._of.process(rows if some.all() else rows.filter(some), _Keep(weight, emitted))
        for port, batches in emitted.items():
            emit(Batch.concat(batches), port)

    @property
    def skipped_records(self) -> int:
        return self._of.skipped_records

    def measured(self) -> tuple[Measured, ...]:
        return self._of.measured()

    def present_call(self) -> RunningCall | None:
        return self._of.present_call()

    def take_refused(self) -> tuple[DroppedRecord, ...]:
        return self._of.take_refused()

    def close(self) -> None:
        self._of.close()


class _Keep:
    """An `Emit` that gives each row a weight, and keeps the batches by port."""

    def __init__(self, weight: int, emitted: dict[str, list[Batch]]) -> None:
        self._weight, self._emitted = weight, emitted

    def __call__(self, batch: Batch, port: str = "out") -> None:
        self._emitted.setdefault(port, []).append(batch.with_rows(with_weight(batch.rows, self._weight)))


def weighed_function(operator: FunctionOperator, function: object, ports: tuple[str, ...] = ("out",)) -> Operator | None:
    """Return `operator` for rows with weights, None if its `function` may keep a state or refuse records."""
    return Weighed(operator, ports) if operator.on_error == "stop" and not isinstance(function, type) else None
