"""`lookup`: adds the columns of a table to the rows of a stream, by keys that both have. Each worker has the whole table.

A key with a null matches nothing. A row with several matches gives a row for each, in the order of the table, with the same event time.
Invariant: a row's results depend on the row and the table alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..errors import ConnectorError, RecordError
from ..keys.encoding import comparable, encode_keys, key_column
from ..keys.table_index import TableIndex
from ..source import Source
from .base import Context, Emit, Operator, OperatorInstance

How = Literal["left", "inner"]
"""What becomes of a row without a match: it stays, with nulls, or is left out."""

POLL_ROWS = 65_536
MOST_EMPTY_POLLS = 10_000
"""A source that has nothing to give this often, and doesn't end, is no table."""

MOST_ROWS = 100_000_000
"""The most rows of a table that is read from a source: one without an end would fill the memory."""


@dataclass(frozen=True, eq=False)
class Lookup(Operator):
    """`table`: the table, or the source that each worker reads it from. `on` maps the stream's key columns to the table's.

    `columns` are those that are added, None for all but the table's keys; one whose name the stream has already gets `suffix`.
    """

    table: pa.Table | Source
    on: Mapping[str, str]
    how: How = "left"
    columns: tuple[str, ...] | None = None
    unique: bool = False
    suffix: str = "_right"
    sources: tuple[Source, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", (self.table,) if isinstance(self.table, Source) else ())

    def open(self, context: Context) -> LookupInstance:
        table = read_whole(self.table, context.name) if isinstance(self.table, Source) else self.table
        problem = table_problem(table, self)
        if problem is not None:
            raise RecordError(context.name, problem)
        return LookupInstance(self, table, context)

    def describe(self) -> str:
        on = ", ".join(mine if mine == theirs else f"{mine} = {theirs}" for mine, theirs in self.on.items())
        table = f"of {self.table.name}" if isinstance(self.table, Source) else f"of {self.table.num_rows:,} rows in memory"
        return f"{self.how} by {on} {table}"


class LookupInstance(OperatorInstance):
    """Finds the rows of each distinct key of a batch once."""

    def __init__(self, operator: Lookup, table: pa.Table, context: Context) -> None:
        super().__init__(context)
        self._names, self._inner, self._suffix = tuple(operator.on), operator.how == "inner", operator.suffix
        self._on = operator.on
        keys = set(operator.on.values())
        added = operator.columns if operator.columns is not None else [name for name in table.column_names if name not in keys]
        self._added = {name: plain(table[name]) for name in added}
        self._keys = [plain(table[name]) for name in operator.on.values()]
        self._index = TableIndex(self._keys, context.name)
        if operator.unique and (place := self._index.repeated()) is not None:
            raise RecordError(context.name, repeated_key(table, operator.on, place))

    def process(self, batch: Batch, emit: Emit) -> None:
        self._check_types(batch.rows)
        keys = encode_keys(batch.rows, self._names, self.context.name)
        found, places = self._index.find(keys.columns)
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
        names = [*rows.schema.names, *(name + self._suffix if name in there else name for name in self._added)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise RecordError(self.context.name, f"two columns would be named `{twice}`: give another suffix=, or rename a column")
        return pa.record_batch([*rows.columns, *(column.take(where) for column in self._added.values())], names=names)

    def _check_types(self, rows: pa.RecordBatch) -> None:
        for (mine, theirs), own in zip(self._on.items(), self._keys, strict=True):
            kind = key_column(rows, mine, self.context.name).type
            if not comparable(kind, own.type):
                problem = f"the stream's column `{mine}` is {kind} and the table's `{theirs}` is {own.type}, which are never equal"
                raise RecordError(self.context.name, f"{problem}: cast one of them")


def table_problem(table: pa.Table, operator: Lookup) -> str | None:
    """What is wrong with the table; None if it can be looked up in."""
    names = table.column_names
    if len(set(names)) < len(names):
        return f"two columns of the table have one name: {', '.join(names)}"
    for name in (*operator.on.values(), *(operator.columns or ())):
        if name not in names:
            return f"the table has no column `{name}`; there are: {', '.join(names)}"
    return None


def repeated_key(table: pa.Table, on: Mapping[str, str], place: int) -> str:
    """What to say of a table with unique=True in which the key of row `place` comes twice."""
    key = {name: table[name][place].as_py() for name in on.values()}
    return f"unique=True, and the table has several rows with {key}: leave the others out, or unique=True for a row of results for each"


def read_whole(source: Source, operator: str) -> pa.Table:
    """All rows of a finite source, in the order of one reader. Raises ConnectorError for one that doesn't end, or that has no rows."""
    reader = source.reader(0, 1)
    batches, rows, empty = list[pa.RecordBatch](), 0, 0
    try:
        while not reader.finished:
            batch = reader.poll(POLL_ROWS)
            if batch is not None:
                batches.append(batch.rows)
                rows += batch.num_rows
            empty = empty + 1 if batch is None else 0
            if rows > MOST_ROWS or empty > MOST_EMPTY_POLLS:
                raise ConnectorError(
                    f"operator `{operator}`: the table is read from `{source.name}`, which gave {rows:,} rows and has not ended: "
                    "give a source with an end"
                )
    finally:
        reader.close()
    if not batches:
        raise ConnectorError(
            f"operator `{operator}`: the table is read from `{source.name}`, which has no rows, so its columns aren't known; "
            "give a pyarrow Table, which has columns also without rows"
        )
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="default")


def plain(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array, and a dictionary as its values."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
