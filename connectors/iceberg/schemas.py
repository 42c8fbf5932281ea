"""The columns of a table for the rows that a job writes: new ones are added to the table, others must have its types."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ...engine.errors import ConnectorError
from .address import TableAddress
from .types import UnsupportedTypeError, engine_type, fits, stored_type

if TYPE_CHECKING:
    from pyiceberg.table import Table

MOST_TRIES = 20
"""Tries to add columns: workers add the same ones at the same time."""


class Shape(NamedTuple):
    """The form in which rows are written: the columns of a file, with field ids, and their plain types (`types.engine_type`)."""

    written: pa.Schema
    held: tuple[pa.DataType, ...]


def shape_for(schema: pa.Schema, address: TableAddress) -> tuple[Table, Shape]:
    """Return the table, and how to write rows of a schema into it; add columns that it lacks.

    A column of nulls is dropped if the table doesn't have it. Raises ConnectorError for a column of another type.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.schema import Schema

    kinds = {field.name: _stored(field, address) for field in schema if not pa.types.is_null(field.type)}
    table = _with_columns(kinds, address)
    there = {field.name: field for field in table.schema().fields}
    names = [name for name in schema.names if name in there]
    if not names:
        raise ConnectorError(
            f"operator `{address.operator}`: no column of the rows has a type yet, because all values are None; give types with schema= "
            "where the values are made"
        )
    missing = next((name for name, field in there.items() if field.required and name not in names), None)
    if missing is not None:
        raise ConnectorError(f"operator `{address.operator}`: column `{missing}` of {address} is required, and the rows don't have it")
    held = []
    for name in names:
        kind = _held(table, name, address)
        if name in kinds and not fits(kinds[name], kind):
            raise ConnectorError(
                f"operator `{address.operator}`: column `{name}` is {kind} in {address}, and {kinds[name]} in the rows; cast() it to the "
                "table's type"
            )
        held.append(kind)
    written = schema_to_pyarrow(Schema(*(there[name] for name in names)))
    return table, Shape(written, tuple(held))


def _stored(field: pa.Field, address: TableAddress) -> pa.DataType:
    try:
        return stored_type(field.type)
    except UnsupportedTypeError as error:
        raise ConnectorError(f"operator `{address.operator}`: column `{field.name}` is {field.type}: {error}") from error


def _held(table: Table, name: str, address: TableAddress) -> pa.DataType:
    from pyiceberg.types import UUIDType

    kind = table.schema().find_field(name).field_type
    try:
        if isinstance(kind, UUIDType):
            raise UnsupportedTypeError("it is uuid, which can't be written; use a string, or fixed[16]")  # noqa: TRY301 -- one message
        return engine_type(kind)
    except UnsupportedTypeError as error:
        raise ConnectorError(f"operator `{address.operator}`: column `{name}` of {address}: {error}") from error


def _with_columns(kinds: dict[str, pa.DataType], address: TableAddress) -> Table:
    """Return the table, with these columns at least."""
    from pyiceberg.exceptions import CommitFailedException

    for _ in range(MOST_TRIES):
        table = address.load()
        there = {field.name for field in table.schema().fields}
        new = [(name, kind) for name, kind in kinds.items() if name not in there]
        if not new:
            return table
        try:
            with table.update_schema() as update:
                update.union_by_name(pa.schema(new))
        except CommitFailedException:
            continue
    raise ConnectorError(f"operator `{address.operator}`: columns can't be added to {address}, which changes all the time; add them first")
