"""Aggregates that keep each of their values with its number, so that values can be taken back: `min`, `median`, `top` and others.

A group keeps its distinct values, or rows of values, and how often each is there; one that was taken back as often as it was added
is dropped. A number may be negative until the value itself arrives, and the value doesn't count meanwhile. The result is computed by
the aggregate itself, from the values that are there: each changed group costs the time of all its values.

>>> from .named.functions import max
>>> of_set = max("x").weighed().bind(pa.schema({"x": pa.int64()}), "step")
>>> add, gone = (Batch(pa.record_batch({"x": values})) for values in ([3, 9, 9, 5], [9, 9]))
>>> left = of_set.merge(of_set.partial(add, np.zeros(4, int), 1), of_set.negated(of_set.partial(gone, np.zeros(2, int), 1)))
>>> of_set.finish(left).to_pylist()
[5]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import Batch
from ..columns import Columns
from ..keys.encoding import encode_keys
from ..types.exact import exactly
from .base import Accumulator, AggregateFunction, Codes, Parts
from .column import InputColumn
from .kept_values import ListAccumulator, in_groups
from .ragged import Ragged

_WEIGHT, _GROUP = "weight", "group"


@dataclass(frozen=True, slots=True)
class Multiset(AggregateFunction):
    """The aggregate `function`, which depends on no event times; `once`: equal values count once, as in `max`."""

    function: AggregateFunction
    once: bool = False

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        return self.function.reads(schema)

    def needs(self) -> frozenset[str] | None:
        return self.function.needs()

    def beside(self, keys: tuple[str, ...]) -> AggregateFunction:
        return Multiset(self.function.beside(keys), self.once)

    def fields(self, known: Columns) -> tuple[str, ...] | None:
        return self.function.fields(known)

    def weighed(self) -> AggregateFunction:
        return self

    def describe(self) -> str:
        return self.function.describe()

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        of = self.function.bind(schema, operator)
        if not of.typed:
            return of
        columns = [InputColumn.of(schema, self.function.describe(), name, operator) for name in self.reads(schema)]
        return MultisetAccumulator(of, columns, once=self.once)


class MultisetAccumulator(ListAccumulator):
    """An accumulator around that of the aggregate, whose lists hold each row of values once, with its number."""

    def __init__(self, of: Accumulator, columns: Sequence[InputColumn], *, once: bool) -> None:
        names = [str(place) for place in range(len(columns))]
        self._fields = [pa.field(_WEIGHT, pa.int64()), *map(pa.field, names, (column.read_type for column in columns))]
        super().__init__(of.operator, pa.struct(self._fields), pa.null())
        self.output_type = of.output_type
        self._of, self._columns, self._once = of, columns, once
        self._keys = (_GROUP, *names)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        values = [column.values(batch) for column in self._columns]
        return (self._counted(np.ones(len(codes), np.int64), values, codes, groups),)

    def reduced(self, values: pa.Array, codes: Codes, groups: int) -> Ragged:
        return self._counted(values.field(_WEIGHT).to_numpy(), values.flatten()[1:], codes, groups)

    def negated(self, parts: Parts) -> Parts:
        lists: Ragged = parts[0]
        weights = pa.array(-lists.values.field(_WEIGHT).to_numpy())
        return (Ragged(self._entries([weights, *lists.values.flatten()[1:]]), lists.offsets),)

    def carried(self, parts: Parts, narrower: Any) -> Parts:
        lists: Ragged = parts[0]
        weights, *values = lists.values.flatten()
        wide = [exactly(value, column.read_type) for value, column in zip(values, self._columns, strict=True)]
        return (self.reduced(self._entries([weights, *wide]), lists.codes(np.arange(len(lists))), len(lists)),)

    def finish(self, parts: Parts) -> pa.Array:
        lists: Ragged = parts[0]
        weights, *values = lists.values.flatten()
        times = np.maximum(weights.to_numpy(), 0)
        where = np.repeat(np.arange(len(times)), np.minimum(times, 1) if self._once else times)
        names = [column.name for column in self._columns]
        rows = pa.RecordBatch.from_arrays([value.take(pa.array(where)) for value in values], names=names)
        codes = lists.codes(np.arange(len(lists)))[where]
        return self._of.finish(self._of.partial(Batch(rows), codes, len(lists)))

    def _entries(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        return pa.StructArray.from_arrays(columns, fields=self._fields)

    def _counted(self, weights: Any, values: Sequence[pa.Array], codes: Codes, groups: int) -> Ragged:
        """Return lists with each distinct row of `values` in a group once, none whose weights add up to zero."""
        if not len(codes):
            return Ragged.empty(self.kind, groups)
        rows = pa.RecordBatch.from_arrays([pa.array(codes.astype(np.int64)), *values], names=list(self._keys))
        distinct = encode_keys(rows, self._keys, self.operator)
        sums = np.zeros(distinct.count, np.int64)
        np.add.at(sums, distinct.codes, weights)
        group = distinct.columns[0].to_numpy()
        kept = np.flatnonzero(sums)
        order = in_groups(group[kept], groups)
        place = pa.array(kept[order])
        columns = [column.take(place).cast(column_.type) for column, column_ in zip(distinct.columns[1:], self._fields[1:], strict=True)]
        return Ragged.of(self._entries([pa.array(sums[kept[order]]), *columns]), np.bincount(group[kept], minlength=groups))
