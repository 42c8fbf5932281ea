"""The value of the earliest and of the latest row.

With event time, ties are decided by value: the smallest one for the earliest row, the largest one for the latest. So the
result does not depend on the order of arrival. Without event time the order of arrival decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ..base import Accumulator, AggregateFunction, Array, Codes, Parts, call, seen_in
from ..column import InputColumn
from ..untyped import UntypedAccumulator
from ..values import Values, values_of

ARRIVAL = -(2**63)
"""The time of every value of a stream without event time; no event time is as early."""


@dataclass(frozen=True, slots=True)
class Ordered(AggregateFunction):
    """The aggregate of the non-null value of the earliest row, or of the latest."""

    column: str
    last: bool

    def describe(self) -> str:
        return call("last" if self.last else "first", self.column)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "last" if self.last else "first", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator)
        return OrderedAccumulator(source, values_of(source), self.last)


class OrderedAccumulator(Accumulator):
    """The earliest or latest value. Parts: (time, value, whether it exists). On the wire time and value, null for none."""

    def __init__(self, source: InputColumn, values: Values, last: bool) -> None:
        self.source, self.values, self.last = source, values, last
        self.operator, self.output_type, self.part_types = source.operator, values.kind, (pa.int64(), values.kind)

    def empty(self, n: int) -> Parts:
        return np.zeros(n, np.int64), self.values.blank(n), np.zeros(n, np.bool_)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        if rows.times is None:
            positions, seen = self._end(np.arange(len(rows.codes)), rows.codes, groups)
            values = self.values.blank(groups)
            values[seen] = self.values.read_at(rows.values, positions[seen])
            return np.where(seen, ARRIVAL, 0), values, seen
        times, seen = self._end(rows.times, rows.codes, groups)
        at_end = rows.times == times[rows.codes]
        values = self.values.extreme(rows.values.filter(pa.array(at_end)), rows.codes[at_end], groups, self.last)
        return times, values, seen

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        row_times, row_values, row_seen = parts
        if not row_seen.all():
            row_times, row_values, codes = row_times[row_seen], row_values[row_seen], codes[row_seen]
        if len(row_times) and row_times[0] == ARRIVAL:
            positions, seen = self._end(np.arange(len(codes)), codes, groups)
            values = self.values.blank(groups)
            values[seen] = row_values[positions[seen]]
            return np.where(seen, ARRIVAL, 0), values, seen
        times, seen = self._end(row_times, codes, groups)
        at_end = row_times == times[codes]
        return times, self.values.reduce(row_values[at_end], codes[at_end], groups, self.last), seen

    def merge(self, left: Parts, right: Parts) -> Parts:
        both = left[2] & right[2]
        by_time = right[0] > left[0] if self.last else right[0] < left[0]
        tie = both & (left[0] == right[0])
        arrived = tie & (left[0] == ARRIVAL)
        take_right = np.where(both, by_time | (arrived if self.last else False), right[2])
        mine: Array = left[1]
        theirs: Array = right[1]
        values = np.where(take_right, theirs, mine)
        equal = tie & ~arrived
        values[equal] = self.values.better(mine[equal], theirs[equal], self.last)
        return np.where(take_right, right[0], left[0]), values, left[2] | right[2]

    def finish(self, parts: Parts) -> pa.Array:
        return self.values.write(parts[1], parts[2])

    def carried(self, parts: Parts, narrower: Self) -> Parts:
        return parts[0], self.values.carried(parts[1], parts[2], narrower.values), parts[2]

    def to_arrow(self, parts: Parts) -> list[pa.Array]:
        return [pa.array(parts[0]), self.values.write(parts[1], parts[2])]

    def from_arrow(self, arrays: Sequence[pa.Array]) -> Parts:
        self.check_types(arrays)
        times, values = arrays
        return times.to_numpy(), self.values.read(values), values.is_valid().to_numpy(zero_copy_only=False)

    def nbytes(self, parts: Parts) -> int:
        return int(parts[0].nbytes) + self.values.nbytes(parts[1]) + int(parts[2].nbytes)

    def _end(self, places: npt.NDArray[np.int64], codes: Codes, groups: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the lowest (or highest) of `places` in each group, 0 for none, and a mask of the groups that have one."""
        end = np.full(groups, ARRIVAL if self.last else -(ARRIVAL + 1), np.int64)
        (np.maximum if self.last else np.minimum).at(end, codes, places)
        seen = seen_in(codes, groups)
        return np.where(seen, end, 0), seen
