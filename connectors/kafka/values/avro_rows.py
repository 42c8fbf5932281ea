"""Encoding of rows as Avro values, with a schema from the user or the newest one of a registry."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ....engine.batch import Batch
from ....engine.columns import Columns
from ....engine.errors import ConnectorError, RecordError
from ....engine.types.casting import cast
from ...avro.registry import SchemaRegistry, header_of
from ...avro.rows import holes, refuses, stored_type
from ...avro.schema import AvroSchema


@dataclass(frozen=True)
class AvroRows:
    """An encoder of rows as Avro values.

    `schema`: None until the registry supplies it; `header`: the bytes that precede each value.
    """

    schema: AvroSchema | None
    registry: SchemaRegistry | None
    operator: str
    header: bytes = b""

    def settled(self, subject: str) -> AvroRows:
        """Return the encoder with a schema that the registry has under this subject.

        Raises ConnectorError if the registry has none, or rejects this one.
        """
        if self.registry is None:
            return self
        if self.schema is not None:
            return replace(self, header=header_of(self.registry.register(subject, self.schema)))
        number, newest = self.registry.newest(subject)
        return replace(self, schema=newest, header=header_of(number))

    def problem(self, columns: Columns) -> str | None:
        """Return why a stream with these known columns can't be written, or None if it may be."""
        if self.schema is None:
            return None
        wanted = self.schema.columns
        for name in wanted.names:
            if columns.lacks(name) and name not in self._defaults:
                return f"no column `{name}` among {columns.listed()}; the schema has it, without a default"
        for name, kind in columns.types.items():
            if name not in wanted.names:
                return f"column `{name}` isn't in the schema, which has {', '.join(wanted.names)}; remove it with select() or drop()"
            if kind is not None and (problem := refuses(kind, wanted.field(name).type)) is not None:
                return f"column `{name}` is {kind}, and the schema's is {wanted.field(name).type}: {problem}"
        return None

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """Encode each row. Raises RecordError for a row that the schema can't hold."""
        from fastavro import schemaless_writer

        schema = self.schema
        assert schema is not None
        records = self._records(rows, schema)
        values, file = list[bytes](), io.BytesIO()
        for place, record in enumerate(records):
            file.seek(0)
            file.truncate()
            file.write(self.header)
            try:
                schemaless_writer(file, schema.plain, record)
            except (TypeError, ValueError, OverflowError, AttributeError) as error:
                raise self._refused(rows, place, str(error)) from error
            values.append(file.getvalue())
        return pa.array(values, pa.binary())

    @property
    def _defaults(self) -> Mapping[str, Any]:
        assert self.schema is not None
        fields = self.schema.expanded["fields"] if self.schema.is_record else ()
        return {field["name"]: field["default"] for field in fields if "default" in field}

    def _records(self, rows: pa.RecordBatch, schema: AvroSchema) -> list[Any]:
        """Convert the rows for fastavro: times become numbers."""
        columns = list[list[Any]]()
        types = {field["name"]: field["type"] for field in schema.expanded["fields"]} if schema.is_record else {}
        for field, column in zip(rows.schema, rows.columns, strict=True):
            wanted = schema.columns.field(field.name).type
            try:
                typed = cast(column, wanted)
            except pa.ArrowException as error:
                raise self._misfit(rows, column, wanted, field.name, error) from error
            hole = holes(typed, types.get(field.name, schema.expanded))
            if hole is not None:
                raise self._refused(rows, hole, f"column `{field.name}` has a null, which the schema doesn't allow")
            columns.append(typed.cast(stored_type(wanted)).to_pylist(maps_as_pydicts="strict"))
        if not schema.is_record:
            return columns[0]
        names = rows.schema.names
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def _misfit(
        self, rows: pa.RecordBatch, column: pa.Array, wanted: pa.DataType, name: str, error: pa.ArrowException
    ) -> RecordError | ConnectorError:
        for place in range(rows.num_rows):
            try:
                cast(column.slice(place, 1), wanted)
            except pa.ArrowException as problem:
                return self._refused(rows, place, f"column `{name}`: {problem}")
        return ConnectorError(f"operator `{self.operator}`: column `{name}`: {error}")

    def _refused(self, rows: pa.RecordBatch, place: int, problem: str) -> RecordError:
        advice = "map it to a value that the schema holds, or change schema="
        return RecordError(self.operator, f"{problem}; {advice}", record=Batch(rows.slice(place, 1)).to_rows()[0])
