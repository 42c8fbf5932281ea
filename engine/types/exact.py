"""Conversions of columns to wider types, which change no value.

>>> exactly(pa.array([1, None]), pa.float64()).to_pylist()
[1.0, None]
>>> exactly(pa.array([1, 2**53 + 1]), pa.float64())
Traceback (most recent call last):
    ...
evenflow.engine.types.exact.Inexact: 9007199254740993 (int64) can't be represented exactly as double
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

from .widening import wider

_REFUSALS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


class Inexact(ValueError):
    """The error for the value at `place` of a column, which would change with the column's type. `name`: the column's, if known."""

    def __init__(self, column: pa.Array, place: int, kind: pa.DataType, name: str | None = None) -> None:
        self.place = place
        of_column = "" if name is None else f"column `{name}`: "
        super().__init__(f"{of_column}{_text(column[place])} ({column.type}) can't be represented exactly as {kind}")


def exactly(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the column as a type that `wider` found for its own. Raises Inexact for a value that would change.

    Arrow's checked casts refuse the values that `wider` can't promise: integers beyond 2**53 as floats, times that don't fit a
    finer unit.
    """
    if column.type == kind:
        return column
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    if pa.types.is_dictionary(column.type):
        return exactly(column.dictionary_decode(), kind)
    try:
        return column.cast(kind)
    except _REFUSALS as error:
        raise Inexact(column, _first_refused(column, kind), kind) from error


def widened(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows with the types and metadata of `schema`, whose columns have the same names.

    Raises Inexact, naming the column, for a value that would change.
    """
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = [_exactly(column, field) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _exactly(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return exactly(column, field.type)
    except Inexact as error:
        raise Inexact(column, error.place, field.type, field.name) from error


def common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the schema that holds all of these, which have the same columns in the same order.

    Raises NoCommonType, naming a column.
    """
    return reduce(_common, schemas)


def common_schema(first: pa.Schema, second: pa.Schema) -> pa.Schema | None:
    """Return the common schema of two schemas, None if their columns or types are not compatible.

    >>> common_schema(pa.schema({"a": pa.null()}), pa.schema({"a": pa.int64()}))
    a: int64
    """
    if second.equals(first):
        return first
    if first.names != second.names:
        return None
    fields = [b if pa.types.is_null(a.type) else a for a, b in zip(first, second, strict=True)]
    fits = all(b.type == common.type or pa.types.is_null(b.type) for common, b in zip(fields, second, strict=True))
    return pa.schema(fields) if fits else None


class NoCommonType(ValueError):
    """The error for a column `name` that came with two types that no type holds."""

    def __init__(self, name: str, left: pa.DataType, right: pa.DataType) -> None:
        self.name, self.types = name, (left, right)
        found = " and ".join(sorted((str(left), str(right))))
        super().__init__(f"column `{name}` has values of the types {found}, and no type holds both")


def _common(left: pa.Schema, right: pa.Schema) -> pa.Schema:
    if left.equals(right):
        return left
    fields = []
    for one, other in zip(left, right, strict=True):
        kind = one.type if one.type == other.type else wider(one.type, other.type)
        if kind is None:
            raise NoCommonType(one.name, one.type, other.type)
        fields.append(pa.field(one.name, kind, one.nullable or other.nullable))
    return pa.schema(fields, metadata=left.metadata or right.metadata)


def _first_refused(column: pa.Array, kind: pa.DataType) -> int:
    """Return the row of the first value that can't be cast, given that there is one."""
    fits, fails = 0, len(column)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        try:
            column.slice(fits, middle - fits).cast(kind)
        except _REFUSALS:
            fails = middle
        else:
            fits = middle
    return fails - 1


def _text(value: pa.Scalar) -> str:
    try:
        return f"{value.as_py()!r:.200}"
    except (ValueError, OverflowError):  # a time that Python can't represent
        return str(value.cast(pa.int64()))
