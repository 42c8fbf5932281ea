"""The aggregate `collect`: all values of a column, as a list in the order of event time, then of the values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ..base import Accumulator, AggregateFunction, Codes, Parts, call
from ..column import InputColumn
from ..kept_values import AllValuesAccumulator, sorted_in_groups, with_ties_in_order
from ..ragged import Ragged
from ..row_order import has_order, order_keys
from ..untyped import UntypedAccumulator


@dataclass(frozen=True, slots=True)
class Collect(AggregateFunction):
    """The aggregate of a column's non-null values. Without event time they are in their own order."""

    column: str

    def describe(self) -> str:
        return call("collect", self.column)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "collect", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator)
        if not has_order(source.type):
            raise source.refusal("columns that have an order, for values of the same time, so not on nested ones")
        return CollectAccumulator(source)


class CollectAccumulator(AllValuesAccumulator):
    """An accumulator whose lists hold every value with its time, 0 without event time."""

    def __init__(self, source: InputColumn) -> None:
        kind = pa.struct([("time", pa.int64()), ("value", source.read_type)])
        super().__init__(source.operator, kind, pa.list_(source.type))
        self.source = source

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        times = np.zeros(len(rows.codes), np.int64) if rows.times is None else rows.times
        values = pa.StructArray.from_arrays([pa.array(times), rows.values], fields=list(self.kind))
        return (self.reduced(values, rows.codes, groups),)

    def finish(self, parts: Parts) -> pa.Array:
        lists: Ragged = parts[0]
        times, values = lists.values.field("time").to_numpy(), lists.values.field("value")
        codes = lists.codes(np.arange(len(lists)))
        order = sorted_in_groups(times, codes, len(lists))
        order = with_ties_in_order(order, codes, times, lambda places: [order_keys(values.take(pa.array(places)))])
        ordered = values.take(pa.array(order)).cast(self.source.type)
        return Ragged(ordered, lists.offsets).to_arrow(lists.counts == 0).cast(self.output_type)
