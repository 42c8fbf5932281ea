"""The operator `lookup`: it adds the columns of a table to the rows of a stream, by keys that both have.

Each worker has the whole table. A key with a null matches nothing. A row with several matches gives a row for each, in the order
of the table, with the same event time. Invariant: a row's results depend on the row and the table alone, and all rows of a batch
meet one table. The table is no state: it is in no checkpoint, and every attempt reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ...columns import UNKNOWN, Columns
from ...context import Context, Emit
from ...errors import RecordError, shown
from ...joins.join_columns import right_names
from ...keys.encoding import comparable, encode_keys, key_column
from ...source import Source
from ...updates import Updates
from ..base import Operator, OperatorInstance
from .lookup_table import LookupTable, TableOrigin, TableShape, loaded
from .refresh import Refresh

How = Literal["left", "inner"]
"""The treatment of a row without a match: "left" keeps it, with nulls, "inner" drops it."""


@dataclass(frozen=True, eq=False)
class Lookup(Operator):
    """A lookup. `table`: the table, or its origin for each worker: a source, or a function.

    `on` maps the stream's key columns to the table's. `columns` are those that are added, None for all but the table's keys; one
    whose name the stream has already gets `suffix`. `refresh`: seconds after which the table is read again; None: never.
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

    def given_settings(self) -> dict[str, Any]:
        return self.settings_without("sources")

    @property
    def has_background_work(self) -> bool:
        return self.refresh is not None

    @property
    def shape(self) -> TableShape:
        """Return the requirements on its table."""
        return TableShape(tuple(self.on.values()), self.columns, self.unique)

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        stream, table = inputs[0], self._known_table
        types = {result: table.type_of(name) for name, result in self._beside(stream).items()}
        return Columns({**stream.types, **types}, stream.complete and (table.complete or self.columns is not None))

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        stream, table = inputs[0], self._known_table
        for mine, theirs in self.on.items():
            if stream.lacks(mine):
                return f"no key column `{mine}`; there are: {stream.listed()}"
            if problem := never_equal(mine, stream.type_of(mine), theirs, table.type_of(theirs)):
                return problem
        return named_twice([*stream.types, *self._beside(stream).values()])

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        before = inputs[0]
        return before if before is None or self.unique else replace(before, key=None)

    def open(self, context: Context) -> LookupInstance:
        return LookupInstance(self, loaded(self.table, self.shape, context.name), context)

    def describe(self) -> str:
        on = ", ".join(mine if mine == theirs else f"{mine} = {theirs}" for mine, theirs in self.on.items())
        again = f", read again every {self.refresh:g} s" if self.refresh is not None else ""
        return f"{self.how} by {on} table {self._origin}{again}"

    @property
    def _known_table(self) -> Columns:
        if isinstance(self.table, pa.Table):
            return Columns.of(self.table.schema)
        return self.table.known_columns() if isinstance(self.table, Source) else UNKNOWN

    def _beside(self, stream: Columns) -> dict[str, str]:
        """Return the certain names in the results of the table's columns."""
        table = self._known_table.types
        added = self.columns if self.columns is not None else [name for name in table if name not in self.on.values()]
        certain = [name for name in added if stream.complete or name in stream.types]
        return right_names(stream.types, certain, set(), self.suffix)

    @property
    def _origin(self) -> str:
        if isinstance(self.table, pa.Table):
            return f"of {self.table.num_rows:,} rows in memory"
        return f"of {self.table.name}" if isinstance(self.table, Source) else "that a function gives"


class LookupInstance(OperatorInstance):
    """An instance that looks each distinct key of a batch up once. It replaces its table between two batches."""

    def __init__(self, operator: Lookup, table: LookupTable, context: Context) -> None:
        super().__init__(context)
        self._operator, self._table = operator, table
        self._names, self._inner, self._suffix = tuple(operator.on), operator.how == "inner", operator.suffix
        self._refresh = Refresh(operator.refresh) if operator.refresh is not None else None

    def background_work(self) -> Callable[[], LookupTable] | None:
        if self._refresh is None or not self._refresh.due(self.context.now()):
            return None
        operator, before = self._operator, self._table
        return partial(loaded, operator.table, operator.shape, self.context.name, before)

    def work_result(self, result: Any) -> None:
        self._table = result

    def work_failed(self, error: BaseException) -> str:
        return f"the table could not be read again, so the previous one remains in use: {shown(error)}"

    def work_ended(self) -> None:
        if self._refresh is not None:
            self._refresh.ended()

    def overdue(self) -> str | None:
        if self._refresh is None or not self._refresh.overdue(self.context.now()):
            return None
        return f"reading the table takes longer than refresh={self._refresh.every:g} s, so the previous one remains in use until it is read"

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
        """Return the batch with each row as often as it has matches, and the indices of these in the table, -1 for none."""
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
        added = right_names(rows.schema.names, self._table.columns, set(), self._suffix)
        names = [*rows.schema.names, *added.values()]
        problem = named_twice(names)
        if problem is not None:
            raise RecordError(self.context.name, problem)
        return pa.record_batch([*rows.columns, *(column.take(where) for column in self._table.columns.values())], names=names)

    def _check_types(self, rows: pa.RecordBatch) -> None:
        for (mine, theirs), own in zip(self._operator.on.items(), self._table.keys, strict=True):
            kind = key_column(rows, mine, self.context.name).type
            problem = never_equal(mine, kind, theirs, own.type)
            if problem is not None:
                raise RecordError(self.context.name, problem)


def never_equal(mine: str, kind: pa.DataType | None, theirs: str, other: pa.DataType | None) -> str | None:
    """Describe a key column of the stream and one of the table whose types are never equal; None otherwise.

    A type may be unknown (None).
    """
    if kind is None or other is None or comparable(kind, other):
        return None
    return f"the stream's column `{mine}` is {kind} and the table's `{theirs}` is {other}, which are never equal: cast one of them"


def named_twice(names: list[str]) -> str | None:
    """Describe the problem of results with duplicate names; None without one."""
    twice = next((name for name in names if names.count(name) > 1), None)
    return twice and f"two columns would be named `{twice}`: give another suffix=, or rename a column"
