"""The aggregate `count`: of rows, or of the non-null values of a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ..base import Accumulator, AggregateFunction, Codes, Parts, call
from ..column import InputColumn, column_of


@dataclass(frozen=True, slots=True)
class Count(AggregateFunction):
    """The aggregate that counts a group's rows, or a column's non-null values."""

    column: str | None = None

    def describe(self) -> str:
        return call("count") if self.column is None else call("count", self.column)

    def weighed(self) -> AggregateFunction:
        return self

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        if self.column is not None:
            InputColumn.of(schema, "count", self.column, operator)
        return CountAccumulator(operator, self.column)


class CountAccumulator(Accumulator):
    """An accumulator of counts. Parts: (count,)."""

    part_types = (pa.int64(),)
    output_type = pa.int64()
    fixed_width = True

    def __init__(self, operator: str, column: str | None) -> None:
        self.operator, self.column = operator, column

    def empty(self, n: int) -> Parts:
        return (np.zeros(n, np.int64),)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        if self.column is not None:
            column = column_of(batch, "count", self.column, self.operator)
            if column.null_count:
                codes = codes[column.is_valid().to_numpy(zero_copy_only=False)]
        return (np.bincount(codes, minlength=groups),)

    def counted_partial(self, batch: Batch, codes: Codes, groups: int, rows: npt.NDArray[np.int64]) -> Parts:
        return (rows,) if self.column is None else self.partial(batch, codes, groups)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        counts = np.zeros(groups, np.int64)
        np.add.at(counts, codes, parts[0])
        return (counts,)

    def merge(self, left: Parts, right: Parts) -> Parts:
        return (left[0] + right[0],)

    def negated(self, parts: Parts) -> Parts:
        return (-parts[0],)

    def finish(self, parts: Parts) -> pa.Array:
        return pa.array(parts[0], pa.int64())
