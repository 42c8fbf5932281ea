"""`lookup`: adds the columns of a table to the rows of a stream, by keys that both have. Each worker has the whole table.

A key with a null matches nothing. A row with several matches gives a row for each, in the order of the table, with the same event time.
Invariant: a row's results depend on the row and the table alone, and all rows of a batch meet one table. The table is no state: it is in no
checkpoint, and is read anew by every attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..errors import RecordError, shown
from ..keys.encoding import comparable, encode_keys, key_column
from ..source import Source
from .base import Context, Emit, Operator, OperatorInstance
from .lookup_table import LookupTable, TableOrigin, TableShape, loaded
from .refresh import Refresh

How = Literal["left", "inner"]
"""What becomes of a row without a match: it stays, with nulls, or is left out."""


@dataclass(frozen=True, eq=False)
class Lookup(Operator):
    """`table`: the table, or what each worker reads it from: a source, or a function. `on` maps the stream's key columns to the table's.

    `columns` are those that are added, None for all but the table's keys; one whose name the stream has already gets `suffix`. `refresh`:
    seconds after which the table is read again; None: never.
    """

    table: TableOrigin
    on: Mapping[str, str]
    how: How = "left"
    columns: tuple[str, ...] | None = None
    unique: bool = False
    suffix: str = "_right"
    refresh: float | None = None
    sources: tuple[Source, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", (self.table,) if isinstance(self.table, Source) else ())

    @property
    def works_outside(self) -> bool:
        return self.refresh is not None

    @property
    def shape(self) -> TableShape:
        """What it wants of its table."""
        return TableShape(tuple(self.on.values()), self.columns, self.unique)

    def open(self, context: Context) -> LookupInstance:
        return LookupInstance(self, loaded(self.table, self.shape, context.name), context)

    def describe(self) -> str:
        on = ", ".join(mine if mine == theirs else f"{mine} = {theirs}" for mine, theirs in self.on.items())
        again = f", read again every {self.refresh:g} s" if self.refresh is not None else ""
        return f"{self.how} by {on} table {self._origin}{again}"

    @property
    def _origin(self) -> str:
        if isinstance(self.table, pa.Table):
            return f"of {self.table.num_rows:,} rows in memory"
        return f"of {self.table.name}" if isinstance(self.table, Source) else "that a function gives"


class LookupInstance(OperatorInstance):
    """Finds the rows of each distinct key of a batch once. Asks for its table again when that is due, and takes it between two batches."""

    def __init__(self, operator: Lookup, table: LookupTable, context: Context) -> None:
        super().__init__(context)
        self._operator, self._table = operator, table
        self._names, self._inner, self._suffix = tuple(operator.on), operator.how == "inner", operator.suffix
        self._refresh = Refresh(operator.refresh) if operator.refresh is not None else None

    def wanted(self) -> Callable[[], LookupTable] | None:
        if self._refresh is None or not self._refresh.due(self.context.now()):
            return None
        operator, before = self._operator, self._table
        return partial(loaded, operator.table, operator.shape, self.context.name, before)

    def brought(self, result: Any) -> None:
        self._table = result

    def failed(self, error: BaseException) -> str:
        return f"the table could not be read again, so the one before stays: {shown(error)}"

    def returned(self) -> None:
        if self._refresh is not None:
            self._refresh.returned()

    def overdue(self) -> str | None:
        if self._refresh is None or not self._refresh.overdue(self.context.now()):
            return None
        return f"the table is being read for longer than refresh={self._refresh.every:g} s, so the one before stays until it is there"

    def process(self, batch: Batch, emit: Emit) -> None:
        self._check_types(batch.rows)
        keys = encode_keys(batch.rows, self._names, self.context.name)
        found, places = self._table.index.find(keys.columns)
        counts = np.bincount(found, minlength=keys.count)
        if counts.max(initial=0) <= 1:
            matches = np.full(keys.count, -1, np.intp)
            matches[found] = places
            rows = matches[keys.codes]
            if self._inner and not (known := rows >= 0).all():
                batch, rows = batch.filter(known), rows[known]
        else:
            batch, rows = self._each_match(batch, keys.codes, counts, places)
        if batch.num_rows:
            emit(batch.with_rows(self._joined(batch.rows, rows)))

    def _each_match(
        self, batch: Batch, codes: npt.NDArray[np.intp], counts: npt.NDArray[np.intp], places: npt.NDArray[np.intp]
    ) -> tuple[Batch, npt.NDArray[np.intp]]:
        """The batch with each row as often as it has matches, and the places of these in the table, -1 for none."""
        often = counts[codes]
        if not self._inner:
            often = np.maximum(often, 1)
        begins = (np.cumsum(counts) - counts)[codes]
        rows = np.repeat(np.arange(batch.num_rows), often)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(often) - often, often)
        known = np.repeat(counts[codes] > 0, often)
        matches = np.full(len(rows), -1, np.intp)
        matches[known] = places[(np.repeat(begins, often) + nth)[known]]
        return batch.take(rows), matches

    def _joined(self, rows: pa.RecordBatch, matches: npt.NDArray[np.intp]) -> pa.RecordBatch:
        where = pa.array(matches, mask=matches < 0)
        there = set(rows.schema.names)
        names = [*rows.schema.names, *(name + self._suffix if name in there else name for name in self._table.columns)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise RecordError(self.context.name, f"two columns would be named `{twice}`: give another suffix=, or rename a column")
        return pa.record_batch([*rows.columns, *(column.take(where) for column in self._table.columns.values())], names=names)

    def _check_types(self, rows: pa.RecordBatch) -> None:
        for (mine, theirs), own in zip(self._operator.on.items(), self._table.keys, strict=True):
            kind = key_column(rows, mine, self.context.name).type
            if not comparable(kind, own.type):
                problem = f"the stream's column `{mine}` is {kind} and the table's `{theirs}` is {own.type}, which are never equal"
                raise RecordError(self.context.name, f"{problem}: cast one of them")
