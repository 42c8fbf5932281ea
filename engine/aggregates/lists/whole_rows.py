"""The aggregate of all rows of a group with their event times: the input of a function of whole windows.

>>> batch = Batch(pa.record_batch({"n": [1, 2, 3]}), np.array([30, 10, 20]))
>>> accumulator = WholeRows().bind(batch.rows.schema, "step")
>>> accumulator.finish(accumulator.partial(batch, np.array([0, 0, 1]), 2)).to_pylist()
[[{'n': 2}, {'n': 1}], [{'n': 3}]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ...errors import RecordError
from ..base import Accumulator, AggregateFunction, Codes, Parts
from ..column import InputColumn
from ..kept_values import ListAccumulator, in_groups, sorted_in_groups, taken
from ..ragged import Ragged
from ..row_order import has_order, sort_keys

TIME = "__time"


@dataclass(frozen=True, slots=True)
class WholeRows(AggregateFunction):
    """The aggregate of all rows as a list in the order of event time, then of their values, if these have an order."""

    column: str | None = None

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        return tuple(schema.names)

    def needs(self) -> frozenset[str] | None:
        return None

    def describe(self) -> str:
        return "whole rows"

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        return WholeRowsAccumulator(operator, [InputColumn.of(schema, "rows", name, operator) for name in schema.names])


class WholeRowsAccumulator(ListAccumulator):
    """An accumulator whose lists hold rows as structs, their time in front of their columns."""

    def __init__(self, operator: str, columns: list[InputColumn]) -> None:
        kind = pa.struct([(TIME, pa.int64()), *((column.name, column.type) for column in columns)])
        super().__init__(operator, kind, pa.large_list(pa.struct(list(kind)[1:])))
        self.columns = columns

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        if batch.times is None:
            raise RecordError(self.operator, "it has windows, but its stream has no event time: give the source event_time=")
        values = [pa.array(batch.times), *(column.values(batch).cast(column.type) for column in self.columns)]
        return (self.reduced(pa.StructArray.from_arrays(values, fields=list(self.kind)), codes, groups),)

    def reduced(self, values: pa.Array, codes: Codes, groups: int) -> Ragged:
        return Ragged.of(taken(values, in_groups(codes, groups)), np.bincount(codes, minlength=groups))

    def finish(self, parts: Parts) -> pa.Array:
        lists: Ragged = parts[0]
        times, codes = lists.values.field(0).to_numpy(), lists.codes(np.arange(len(lists)))
        fields = [lists.values.field(i) for i in range(1, lists.values.type.num_fields)]
        order = sorted_in_groups(times, codes, len(lists))
        if ((times[order][1:] == times[order][:-1]) & (codes[order][1:] == codes[order][:-1])).any():
            by = sort_keys([(column, False) for column in fields if has_order(column.type)])
            order = np.lexsort((*reversed(by), times, codes))
        rows = pa.StructArray.from_arrays(fields, fields=list(self.kind)[1:]).take(pa.array(order))
        return Ragged(rows, lists.offsets).to_arrow()
