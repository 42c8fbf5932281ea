"""Decoding of Avro values to rows, with the writer's schema from a registry, or with one schema for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ....engine.errors import ConnectorError
from ...avro.registry import SchemaRegistry, number_of
from ...avro.resolution import inexact, misread, promotes
from ...avro.schema import AvroSchema
from .avro_writers import WriterSchemas, datum
from .decoding import Decoder, UndecodableError, Values


class AvroValues(Decoder):
    """A decoder of one Avro datum per value, with its fields as columns; a tombstone is a row of nulls.

    With a `registry`, values begin with the number of the schema that wrote them, which may be older or newer than `schema`, the
    reader's. If that is None, the reader's schema is the newest one of the `subjects`.
    """

    def __init__(self, schema: AvroSchema | None, registry: SchemaRegistry | None, subjects: Sequence[str], operator: str) -> None:
        self._schema, self._registry, self._subjects, self._operator = schema, registry, tuple(subjects), operator
        self._writers = None if registry is None else WriterSchemas[Any](registry)
        self._promoted = set[int]()
        """The numbers of the schemas whose whole numbers are read as floats."""

    @property
    def schema(self) -> pa.Schema | None:
        return None if self._schema is None else self._schema.columns

    def inferred(self, sample: Callable[[], Values]) -> Decoder:
        if self._schema is not None or self._registry is None:
            return self
        first, *others = [self._registry.newest(subject)[1] for subject in self._subjects]
        for subject, other in zip(self._subjects[1:], others, strict=True):
            if other.columns != first.columns:
                raise ConnectorError(
                    f"operator `{self._operator}`: the newest schemas of `{self._subjects[0]}` and `{subject}` have different columns; "
                    "give those to read in schema=, or read each topic with its own read_kafka"
                )
        return AvroValues(first, self._registry, self._subjects, self._operator)

    def decode(self, values: Values) -> tuple[pa.RecordBatch, None]:
        assert self._schema is not None
        rows = [self._empty if value is None else self._row(value) for value in values]
        try:
            column = pa.array(rows, self._schema.row_type)
        except (TypeError, ValueError, OverflowError) as error:
            raise UndecodableError(str(error)) from error
        columns = self._schema.columns
        if self._schema.is_record:
            return pa.RecordBatch.from_arrays(column.flatten(), schema=columns), None
        return pa.RecordBatch.from_arrays([column], schema=columns), None

    @property
    def _empty(self) -> dict[str, Any] | None:
        return {} if self._schema is not None and self._schema.is_record else None

    def _row(self, value: bytes) -> Any:
        assert self._schema is not None
        plain = self._schema.plain
        if self._writers is None:
            return datum(value, plain, first=0)
        writer = self._writers.of(value, self._prepared)
        if writer is plain:
            return datum(value, plain)
        row = datum(value, writer, plain)
        if number_of(value) in self._promoted:
            problem = inexact(datum(value, writer), row, self._schema.expanded)
            if problem is not None:
                raise UndecodableError(f"{problem}; read it with a schema that says long")
        return row

    def _prepared(self, number: int, found: AvroSchema) -> Any:
        """Return the schema for fastavro, the reader's own if they are equal. Raises UndecodableError if it doesn't fit the reader's."""
        assert self._schema is not None
        problem = misread(found.expanded, self._schema.expanded)
        if problem is not None:
            raise UndecodableError(f"schema {number} can't be read with the reader's schema: {problem}")
        if promotes(found.expanded, self._schema.expanded):
            self._promoted.add(number)
        return self._schema.plain if found.plain == self._schema.plain else found.plain
