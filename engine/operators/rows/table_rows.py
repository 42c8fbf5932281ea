"""The operator behind the newest change of each key: the rows of the table, without those that are deleted.

>>> TableRows(("id",)).changes([Updates(("id",), origin=1)])
Updates(key=('id',), origin=1, weighed=False, deletions=True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...batch import Batch
from ...columns import UNKNOWN, Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...table_changes import DELETED, OFFSET, PARTITION
from ...updates import Updates
from ...weights import WEIGHT
from ..base import Operator, OperatorInstance

NEWEST, FIRST, LAST = "__newest", "__first_partition", "__last_partition"
"""The columns of its input: a list with the newest change of the key, and the lowest and the highest partition of its changes."""


@dataclass(frozen=True, eq=False)
class TableRows(Operator):
    """An operator that emits the row of each key `keys` that its newest change left."""

    keys: tuple[str, ...]

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        before = inputs[0]
        return None if before is None else replace(before, deletions=True)

    def weighed(self) -> Operator:
        return self

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        known = inputs[0]
        kind = known.type_of(NEWEST)
        fields = known.fields.get(NEWEST)
        if kind is not None:
            types = {field.name: field.type for field in kind.value_type}
        elif fields is not None:
            types = dict.fromkeys(fields)
        else:
            return UNKNOWN
        own = {name: known.type_of(name) for name in self.keys}
        weight = {WEIGHT: known.types[WEIGHT]} if WEIGHT in known.types else {}
        return Columns({**own, **{name: kind for name, kind in types.items() if name not in _ADDED}, **weight}, complete=True)

    def open(self, context: Context) -> TableRowsInstance:
        return TableRowsInstance(self, context)

    def describe(self) -> str:
        return f"rows of {', '.join(self.keys)} that are not deleted"


class TableRowsInstance(OperatorInstance):
    """An instance without state."""

    def __init__(self, operator: TableRows, context: Context) -> None:
        super().__init__(context)
        self._keys = operator.keys

    def process(self, batch: Batch, emit: Emit) -> None:
        self._check(batch)
        there = ~_newest(batch).field(DELETED).to_numpy(zero_copy_only=False)
        if not there.any():
            return
        batch = batch if there.all() else batch.filter(there)
        rows, newest = batch.rows, _newest(batch)
        columns = {name: rows.column(name) for name in self._keys}
        columns |= {field.name: newest.field(place) for place, field in enumerate(newest.type) if field.name not in _ADDED}
        if rows.schema.get_field_index(WEIGHT) >= 0:
            columns[WEIGHT] = rows.column(WEIGHT)
        emit(batch.with_rows(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))))

    def _check(self, batch: Batch) -> None:
        """Raise RecordError if a key has changes in two partitions: which of them is newer is not known."""
        rows = batch.rows
        apart = pc.not_equal(rows.column(FIRST), rows.column(LAST)).to_numpy(zero_copy_only=False)
        if not apart.any():
            return
        row = rows.slice(int(np.flatnonzero(apart)[0]), 1)
        raise RecordError(
            self.context.name,
            f"changes of a row are in two partitions, {row.column(FIRST)[0]} and {row.column(LAST)[0]}, so the newest isn't known: "
            "key= must be the columns by which the changes are partitioned, and the number of partitions must stay as it is",
            key=tuple(row.column(name)[0].as_py() for name in self._keys),
        )


def _newest(batch: Batch) -> pa.StructArray:
    """Return the newest change of each row: each list has one, because each group has at least one change."""
    return pc.list_flatten(batch.rows.column(NEWEST))


_ADDED = frozenset((DELETED, PARTITION, OFFSET))
