"""The columns of a table that a source reads, and where its data files have them.

A file's columns are found by field ids, as Iceberg does: a renamed column is still the same one. Files without ids, which were
imported, have the table's name mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ...engine.errors import ConnectorError
from ...engine.types.casting import unchanged
from .address import TableAddress
from .types import UnsupportedTypeError, engine_type, fits, stored_type

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

_FIELD_ID = b"PARQUET:field_id"


class ReadColumn(NamedTuple):
    """A column that is read: the table's field id, its Arrow type, and the type with the ids of what is inside of it."""

    field_id: int
    kind: pa.DataType
    detailed: pa.DataType
    required: bool


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table that are read, by name, and what says where files without ids have them.

    `mapped`: the names of each field id in such files. `in_partitions`: fields that some partitioning keeps out of files.
    """

    columns: Mapping[str, ReadColumn]
    mapped: Mapping[int, tuple[str, ...]] | None
    in_partitions: frozenset[int]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, column.kind) for name, column in self.columns.items()])

    def places(self, file: pa.Schema, path: str, address: TableAddress) -> dict[str, str]:
        """Return, for the columns that a file has, their names in it. Raises ConnectorError for a file that can't be read exactly."""
        ids = {int(field.metadata[_FIELD_ID]): field.name for field in file if _FIELD_ID in (field.metadata or {})}
        if not ids and self.mapped is None:
            raise ConnectorError(
                f"operator `{address.operator}`: {path} has no field ids, and {address} no schema.name-mapping.default, so its columns "
                "aren't known; set that property"
            )
        found = dict[str, str]()
        for name, column in self.columns.items():
            mapped = () if ids or self.mapped is None else self.mapped.get(column.field_id, ())
            place = ids.get(column.field_id) if ids else next((each for each in mapped if each in file.names), None)
            if place is not None:
                self._check(name, column, file.field(place), path, address)
                found[name] = place
            elif column.required or column.field_id in self.in_partitions:
                raise ConnectorError(
                    f"operator `{address.operator}`: {path} doesn't have the column `{name}` of {address}, whose values are in its "
                    "partitions, or required; select other columns with columns=, or read it with Spark and from_spark"
                )
        return found

    def _check(self, name: str, column: ReadColumn, field: pa.Field, path: str, address: TableAddress) -> None:
        problem = None
        try:
            exact = fits(stored_type(_storage(field.type)), column.kind)
            if not exact or _zoned(field.type) != _zoned(column.kind):
                problem = f"is {field.type}, and {column.kind} in the table"
            elif not _same_fields(field.type, column.detailed):
                problem = "has other fields than in the table, because they changed after the file was written"
        except UnsupportedTypeError as error:
            problem = f"is {field.type}: {error}"
        if problem is not None:
            raise ConnectorError(
                f"operator `{address.operator}`: column `{name}` of {path}, a file of {address}, {problem}; rewrite the table's data files "
                "first (Spark: CALL system.rewrite_data_files), or select other columns with columns="
            )


def columns_of(table: Table, schema: Schema, names: list[str] | None, address: TableAddress) -> TableColumns:
    """Return the columns with these names, None for all. Raises ConnectorError for one that is missing or not supported."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.transforms import IdentityTransform

    there = {field.name: field for field in schema.fields}
    columns = dict[str, ReadColumn]()
    for name in there if names is None else names:
        if name not in there:
            raise ConnectorError(f"operator `{address.operator}`: {address} has no column `{name}`; it has: {', '.join(there)}")
        try:
            kind = engine_type(there[name].field_type)
        except UnsupportedTypeError as error:
            raise ConnectorError(f"operator `{address.operator}`: column `{name}` of {address}: {error}") from error
        columns[name] = ReadColumn(there[name].field_id, kind, schema_to_pyarrow(there[name].field_type), there[name].required)
    fields = [field for spec in table.specs().values() for field in spec.fields]
    return TableColumns(
        columns,
        mapped_names(table),
        frozenset(field.source_id for field in fields if isinstance(field.transform, IdentityTransform)),
    )


def mapped_names(table: Table) -> dict[int, tuple[str, ...]] | None:
    """Return the names that a table's columns have in files without field ids, None if it doesn't say."""
    mapping = table.name_mapping()
    return None if mapping is None else {field.field_id: tuple(field.names) for field in mapping.root if field.field_id is not None}


def converted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a file's column in the table's type. Raises ArrowInvalid for a value that would change."""
    return unchanged(column.storage if isinstance(column, pa.ExtensionArray) else column, kind)


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _zoned(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _same_fields(file: pa.DataType, table: pa.DataType) -> bool:
    """Return True if both have the same fields inside, by name and, where the file has them, by id."""
    if not pa.types.is_nested(file) or not pa.types.is_nested(table):
        return True
    if file.num_fields != table.num_fields:
        return False
    return all(_same_field(file.field(i), table.field(i), named=pa.types.is_struct(file)) for i in range(file.num_fields))


def _same_field(file: pa.Field, table: pa.Field, *, named: bool) -> bool:
    ids = [(field.metadata or {}).get(_FIELD_ID) for field in (file, table)]
    alike = (not named or file.name == table.name) and ids[0] in (None, ids[1])
    return alike and _same_fields(file.type, table.type)
