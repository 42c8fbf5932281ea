"""The table of a `lookup`: read completely from its origin, checked, and indexed by its keys.

Invariant: a table that replaces another one has its keys and columns, of the same types, so that no result changes its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from ....state.errors import EvenflowError
from ...errors import ConnectorError, RecordError, shown
from ...keys.table_index import TableIndex
from ...source import Source
from ...types.views import without_views

TableOrigin: TypeAlias = pa.Table | Source | Callable[[], pa.Table]
"""A table, or the origin that each worker reads it from."""

POLL_ROWS = 65_536
MOST_EMPTY_POLLS = 10_000
"""The number of polls without rows after which a source that doesn't end is refused."""

MOST_ROWS = 100_000_000
"""The most rows of a table that is read from a source: one without an end would fill the memory."""


@dataclass(frozen=True, eq=False)
class TableShape:
    """The requirements of a lookup on a table. `keys`: its key columns; `columns`: those to add, None for all but the keys."""

    keys: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    unique: bool = False


@dataclass(frozen=True, eq=False)
class LookupTable:
    """A table in memory. `columns`: those added to rows; `keys`: the key columns; `index` finds rows by them."""

    columns: Mapping[str, pa.Array]
    keys: tuple[pa.Array, ...]
    index: TableIndex


def loaded(origin: TableOrigin, shape: TableShape, operator: str, before: LookupTable | None = None) -> LookupTable:
    """Read and check the table; `before` is the one that it replaces.

    Raises ConnectorError, naming the operator, if it can't be read, RecordError for a table that doesn't meet the requirements.
    """
    table = read(origin, operator)
    problem = table_problem(table, shape)
    if problem is not None:
        raise RecordError(operator, problem)
    if before is not None:
        shape = TableShape(shape.keys, tuple(before.columns), shape.unique)
        if missing := next((name for name in before.columns if name not in table.column_names), None):
            raise RecordError(operator, f"the table has no column `{missing}` any more; there are: {', '.join(table.column_names)}")
    added = shape.columns if shape.columns is not None else [name for name in table.column_names if name not in shape.keys]
    columns = {name: plain(table[name]) for name in added}
    keys = tuple(plain(table[name]) for name in shape.keys)
    if before is not None:
        columns = {name: _as_before(name, column, before.columns[name], operator) for name, column in columns.items()}
        keys = tuple(_as_before(name, key, old, operator) for name, key, old in zip(shape.keys, keys, before.keys, strict=True))
    index = TableIndex(list(keys), operator)
    if shape.unique and (place := index.repeated()) is not None:
        raise RecordError(operator, repeated_key(table, shape.keys, place))
    return LookupTable(columns, keys, index)


def read(origin: TableOrigin, operator: str) -> pa.Table:
    """Return the whole table. Raises ConnectorError, naming the operator, if it can't be read."""
    if isinstance(origin, pa.Table):
        return origin
    try:
        return _read_whole(origin) if isinstance(origin, Source) else origin()
    except EvenflowError as error:
        raise ConnectorError(f"operator `{operator}`: {error}") from error
    except Exception as error:
        raise ConnectorError(f"operator `{operator}`: its table can't be read: {shown(error)}") from error


def table_problem(table: pa.Table, shape: TableShape) -> str | None:
    """Describe the problem of a table that can't be looked up; None without one."""
    names = table.column_names
    if len(set(names)) < len(names):
        return f"two columns of the table have one name: {', '.join(names)}"
    for name in (*shape.keys, *(shape.columns or ())):
        if name not in names:
            return f"the table has no column `{name}`; there are: {', '.join(names)}"
    return None


def repeated_key(table: pa.Table, keys: tuple[str, ...], place: int) -> str:
    """Describe the problem of a table with unique=True in which the key of row `place` is repeated."""
    key = {name: table[name][place].as_py() for name in keys}
    advice = "remove the others, or omit unique=True to get a row of results for each"
    return f"unique=True, and the table has several rows with {key}: {advice}"


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Return the column as one array, and a dictionary as its values."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _read_whole(source: Source) -> pa.Table:
    """Return all rows of a finite source, in the order of one reader.

    Raises ConnectorError for one that doesn't end, or that has no rows.
    """
    reader = source.reader(0, 1)
    batches, rows, empty = list[pa.RecordBatch](), 0, 0
    try:
        while not reader.finished:
            batch = reader.poll(POLL_ROWS)
            if batch is not None:
                batches.append(without_views(batch.rows))
                rows += batch.num_rows
            empty = empty + 1 if batch is None else 0
            if rows > MOST_ROWS or empty > MOST_EMPTY_POLLS:
                problem = f"which gave {rows:,} rows and has not ended: use a bounded source"
                raise ConnectorError(f"the table is read from `{source.name}`, {problem}")
    finally:
        reader.close()
    if not batches:
        raise ConnectorError(
            f"the table is read from `{source.name}`, which has no rows, so its columns aren't known; "
            "give a pyarrow Table, which has columns also without rows"
        )
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="default")


def _as_before(name: str, column: pa.Array, before: pa.Array, operator: str) -> pa.Array:
    """Return the column if it has its former type; nulls alone are of any type."""
    if column.type.equals(before.type) or pa.types.is_null(before.type):
        return column
    if pa.types.is_null(column.type):
        return column.cast(before.type)
    raise RecordError(operator, f"the table's column `{name}` is {column.type} now and was {before.type}: its type must stay")
