"""The exact number of distinct values: a group keeps every value once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...batch import Batch
from ...keys.encoding import compact
from ..base import Accumulator, AggregateFunction, Codes, Parts, call
from ..column import InputColumn
from ..kept_values import ListAccumulator
from ..multiset import Multiset
from ..ragged import Ragged, joined
from ..untyped import UntypedAccumulator

_MANY = 4
"""The ratio of known to arriving values from which on a look-up of each costs less than sorting all."""


@dataclass(frozen=True, slots=True)
class CountDistinct(AggregateFunction):
    """The aggregate that counts distinct non-null values of a column. All NaN are one value, and -0.0 is 0.0."""

    column: str

    def describe(self) -> str:
        return call("count_distinct", self.column)

    def weighed(self) -> AggregateFunction:
        return Multiset(self, once=True)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "count_distinct", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator, pa.int64(), 0)
        if pa.types.is_nested(source.type) or pa.types.is_interval(source.type):
            raise source.refusal("columns that are not nested")
        return CountDistinctAccumulator(source)


class CountDistinctAccumulator(ListAccumulator):
    """An accumulator whose lists hold each value once."""

    distinct = True

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

    def merge(self, left: Parts, right: Parts) -> Parts:
        """Merge; if few values join many, look each of them up instead of sorting all."""
        known, came = left[0], right[0]
        if len(came.values) * _MANY > len(known.values):
            return super().merge(left, right)
        new = _unknown(known, came)
        rows = np.arange(len(known))
        fresh = Ragged.of(came.values.filter(pa.array(new)), np.bincount(came.codes(rows)[new], minlength=len(rows)))
        if not len(fresh.values):
            return left
        in_turn = np.stack([rows, rows + len(rows)], axis=1).ravel()
        return (Ragged.of(joined([known, fresh])[in_turn].values, known.counts + fresh.counts),)

    def finish(self, parts: Parts) -> pa.Array:
        return pa.array(parts[0].counts, pa.int64())


def _unknown(known: Ragged, came: Ragged) -> npt.NDArray[np.bool_]:
    """Return a mask of the values of `came` that the corresponding list of `known` lacks."""
    encoded = came.values.dictionary_encode()
    size = len(encoded.dictionary)
    places = pc.fill_null(pc.index_in(known.values, encoded.dictionary), -1).to_numpy()
    met = np.flatnonzero(places >= 0)
    there = (np.searchsorted(known.offsets, met, side="right") - 1) * size + places[met]
    return np.isin(came.codes(np.arange(len(came))) * size + encoded.indices.to_numpy(), there, invert=True)


def _canonical(values: pa.Array) -> pa.Array:
    """Return the values with one NaN and one zero."""
    if not pa.types.is_floating(values.type):
        return values
    numbers: npt.NDArray[np.floating] = values.to_numpy(zero_copy_only=False)
    return pa.array(np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers + numbers.dtype.type(0)), values.type)
