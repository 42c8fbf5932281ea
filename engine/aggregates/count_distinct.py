"""How many distinct values there are, exactly: a group keeps every value once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..keys.encoding import compact
from .base import Accumulator, AggregateFunction, Codes, Parts
from .column import InputColumn
from .kept_values import ListAccumulator
from .ragged import Ragged
from .untyped import UntypedAccumulator


@dataclass(frozen=True, slots=True)
class CountDistinct(AggregateFunction):
    """The number of distinct non-null values of a column. All NaN are one value, and -0.0 is 0.0."""

    column: str

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "count_distinct", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator, pa.int64(), 0)
        if pa.types.is_nested(source.type) or pa.types.is_interval(source.type):
            raise source.refusal("columns that are not nested")
        return CountDistinctAccumulator(source)


class CountDistinctAccumulator(ListAccumulator):
    """A list holds each value once."""

    def __init__(self, source: InputColumn) -> None:
        super().__init__(source.operator, source.read_type, pa.int64())
        self.source = source

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        return (self.reduced(rows.values, rows.codes, groups),)

    def reduced(self, values: pa.Array, codes: Codes, groups: int) -> Ragged:
        encoded = _canonical(values).dictionary_encode()
        size = max(len(encoded.dictionary), 1)
        pairs = codes.astype(np.int64) * size + encoded.indices.to_numpy()
        present, _ = compact(pairs, groups * size)
        kept = encoded.dictionary.take(pa.array(present % size))
        return Ragged.of(kept, np.bincount(present // size, minlength=groups))

    def finish(self, parts: Parts) -> pa.Array:
        return pa.array(parts[0].counts, pa.int64())


def _canonical(values: pa.Array) -> pa.Array:
    """The values with one NaN and one zero."""
    if not pa.types.is_floating(values.type):
        return values
    numbers: npt.NDArray[np.floating] = values.to_numpy(zero_copy_only=False)
    return pa.array(np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers + numbers.dtype.type(0)), values.type)
