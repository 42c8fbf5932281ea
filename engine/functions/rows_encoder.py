"""Converts rows that a user's function returned to columns, with one type per column for the whole stream.

The first rows fix the columns and their types (or the user's `schema` does). A later value of another type is an error that names
the operator, the column and the value; a column that was all null so far takes the first type that comes.

>>> RowsEncoder("map").encode([{"a": 1, "b": "x"}]).schema.names
['a', 'b']
>>> RowsEncoder("map").encode([3, 4]).to_pydict()
{'item': [3, 4]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa

from ..batch import ITEM
from ..errors import FlowError, RecordError

_MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError)
"""What Arrow raises for values that don't become a column."""

SchemaLike: TypeAlias = pa.Schema | Mapping[str, Any] | None
"""Column types: an Arrow schema, or a dict from column name to Arrow type or its name (`{"n": "int64"}`)."""


def arrow_schema(schema: SchemaLike, operator: str) -> pa.Schema | None:
    """The Arrow schema of what the user gave. Raises FlowError for an unknown type name."""
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    try:
        return pa.schema([(n, pa.type_for_alias(t) if isinstance(t, str) else t) for n, t in schema.items()])
    except (ValueError, TypeError, AttributeError) as error:
        raise FlowError(f"operator `{operator}`: schema {schema!r}: {error}; give Arrow types, for example {{'n': 'int64'}}") from error


class RowsEncoder:
    """Turns rows (dicts, or plain values for a stream with the one column `item`) into record batches.

    `advice`: what the error for a value of another type recommends; by default the operator's `schema`.
    """

    def __init__(self, operator: str, schema: pa.Schema | None = None, *, advice: str | None = None) -> None:
        self.operator, self.schema, self._advice = operator, schema, advice

    def encode(self, rows: list[Any]) -> pa.RecordBatch:
        """The rows (at least one) as columns. Raises RecordError naming the column and the row."""
        batch = self._batch(rows)
        self.schema = batch.schema
        return batch

    def first_misfit(self, rows: list[Any]) -> tuple[int, RecordError]:
        """The place of the first row that can't be encoded together with the rows before it, and why; there is one."""
        fitting, tried = 0, 1
        while self._problem(rows[:tried]) is None and tried < len(rows):
            fitting, tried = tried, min(2 * tried, len(rows))
        while tried - fitting > 1:
            middle = (fitting + tried) // 2
            fitting, tried = (middle, tried) if self._problem(rows[:middle]) is None else (fitting, middle)
        problem = self._problem(rows[:tried])
        assert problem is not None
        return fitting, problem

    def _problem(self, rows: list[Any]) -> RecordError | None:
        try:
            self._batch(rows)
        except RecordError as error:
            return error
        return None

    def _batch(self, rows: list[Any]) -> pa.RecordBatch:
        plain = not isinstance(rows[0], dict)
        names = self.schema.names if self.schema is not None else [ITEM] if plain else self._names(rows[0])
        if plain:
            if names != [ITEM] or any(isinstance(row, dict) for row in rows):
                self._refuse_shape(rows, names)
            columns = [rows]
        else:
            columns = self._columns(rows, names)
        types = [self.schema.field(i).type if self.schema is not None else None for i in range(len(names))]
        arrays = [self._array(n, c, t, rows) for n, c, t in zip(names, columns, types, strict=True)]
        if plain and arrays[0].null_count and any(row is None for row in rows):
            self._refuse_none()
        return pa.record_batch(arrays, names=names)

    def _names(self, row: dict[Any, Any]) -> list[str]:
        """The columns of the first row of the stream."""
        for name in row:
            if not isinstance(name, str):
                raise RecordError(self.operator, f"the column name {name!r} is no string: name columns by strings", record=row)
        if not row:
            raise RecordError(
                self.operator, "a row is {}, without columns: return at least one, and leave records out with filter or flat_map"
            )
        return list(row)

    def _columns(self, rows: list[Any], names: list[str]) -> list[list[Any]]:
        try:
            if sum(map(len, rows)) == len(rows) * len(names):
                return [[row[name] for row in rows] for name in names]
        except (KeyError, TypeError):
            pass
        self._refuse_shape(rows, names)
        raise AssertionError("a row of another shape was not found")

    def _refuse_shape(self, rows: list[Any], names: list[str]) -> None:
        for row in rows:
            if row is None:
                self._refuse_none()
            keys = list(row) if isinstance(row, dict) else [ITEM]
            if sorted(map(str, keys)) != sorted(names):
                raise RecordError(
                    self.operator, f"every row must have the columns {names}, this one has {keys}: give missing values as None", record=row
                )
        raise RecordError(self.operator, "rows are dicts and plain values in turn: return one kind", record=rows[0])

    def _refuse_none(self) -> NoReturn:
        raise RecordError(
            self.operator,
            f"the function returned None in place of a row: return a row ({{{ITEM!r}: None}} for a null); "
            "leave records out with filter, or with flat_map, which may return no rows",
        )

    def _array(self, name: str, values: list[Any], kind: pa.DataType | None, rows: list[Any]) -> pa.Array:
        known = None if kind is None or pa.types.is_null(kind) else kind
        try:
            return pa.array(values, type=known)
        except _MISFITS as error:
            place = _first_misfit(values, known)
            value, advice = values[place], self._advice or f"set the type with schema={{{name!r}: ...}}"
            if known is not None:
                expected = f"is {known} in this stream"
            elif place and (before := _typed(values[:place])) is not None:
                expected = f"is {before} in the rows before"
            else:
                expected = "must have a type that Arrow has"
            problem = f"column `{name}` {expected}, got {_shown(value)} ({type(value).__name__}); {advice}"
            raise RecordError(self.operator, problem, record=rows[place]) from error


def _first_misfit(values: list[Any], kind: pa.DataType | None) -> int:
    """The place of the first value that has no common type with the values before it; there is one."""
    fits, fails = 0, len(values)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if _typed(values[:middle], kind) is not None else (fits, middle)
    return fails - 1


def _typed(values: list[Any], kind: pa.DataType | None = None) -> pa.DataType | None:
    """The type of the values as a column; None if they have none."""
    try:
        return pa.array(values, type=kind).type
    except _MISFITS:
        return None


def _shown(value: Any) -> str:
    """The text of a value, which may be a user's object."""
    try:
        return f"{value!r:.200}"
    except Exception as error:  # noqa: BLE001 -- a user's __repr__ may raise anything
        return f"an object whose __repr__ raises {type(error).__name__}"
