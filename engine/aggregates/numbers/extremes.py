"""The aggregates `min` and `max`: the smallest and the largest value of a column, in the column's own type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ..base import Accumulator, AggregateFunction, Array, Codes, Parts, call, seen_in
from ..column import InputColumn
from ..multiset import Multiset
from ..untyped import UntypedAccumulator
from ..values import FixedValues, Values, values_of


@dataclass(frozen=True, slots=True)
class Extreme(AggregateFunction):
    """The aggregate of the smallest value of a column, or the largest."""

    column: str
    largest: bool

    def describe(self) -> str:
        return call("max" if self.largest else "min", self.column)

    def weighed(self) -> AggregateFunction:
        return Multiset(self, once=True)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "max" if self.largest else "min", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator)
        return ExtremeAccumulator(source, values_of(source), self.largest)


class ExtremeAccumulator(Accumulator):
    """The smallest or largest value. Parts: (value, whether it exists). On the wire one column, null for none."""

    def __init__(self, source: InputColumn, values: Values, largest: bool) -> None:
        self.source, self.values, self.largest = source, values, largest
        self.operator, self.output_type, self.part_types = source.operator, values.kind, (values.kind,)
        self.fixed_width = isinstance(values, FixedValues)

    def empty(self, n: int) -> Parts:
        return self.values.blank(n), np.zeros(n, np.bool_)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        return self.values.extreme(rows.values, rows.codes, groups, self.largest), seen_in(rows.codes, groups)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        values, seen = parts
        if not seen.all():
            values, codes = values[seen], codes[seen]
        return self.values.reduce(values, codes, groups, self.largest), seen_in(codes, groups)

    def merge(self, left: Parts, right: Parts) -> Parts:
        both = left[1] & right[1]
        mine: Array = left[0]
        theirs: Array = right[0]
        merged = np.where(right[1], theirs, mine)
        merged[both] = self.values.better(mine[both], theirs[both], self.largest)
        return merged, left[1] | right[1]

    def finish(self, parts: Parts) -> pa.Array:
        return self.values.write(*parts)

    def carried(self, parts: Parts, narrower: Self) -> Parts:
        return self.values.carried(parts[0], parts[1], narrower.values), parts[1]

    def to_arrow(self, parts: Parts) -> list[pa.Array]:
        return [self.values.write(*parts)]

    def from_arrow(self, arrays: Sequence[pa.Array]) -> Parts:
        self.check_types(arrays)
        return self.values.read(arrays[0]), arrays[0].is_valid().to_numpy(zero_copy_only=False)

    def nbytes(self, parts: Parts) -> int:
        return self.values.nbytes(parts[0]) + int(parts[1].nbytes)
