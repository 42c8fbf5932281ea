"""Decoding of Avro values to rows, with the writer's schema from a registry, or with one schema for all."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from struct import error as StructError  # noqa: N812 -- its name there says nothing
from typing import Any

import pyarrow as pa

from ....engine.errors import ConnectorError
from ...avro.registry import HEADER_BYTES, SchemaRegistry, UnknownSchemaError, number_of
from ...avro.resolution import inexact, misread, promotes
from ...avro.schema import AvroSchema
from .decoding import Decoder, UndecodableError, Values

DAMAGE = (EOFError, IndexError, KeyError, OverflowError, RecursionError, StructError, TypeError, ValueError)
"""Exceptions that fastavro raises for bytes that the schema didn't write."""


class AvroValues(Decoder):
    """A decoder of one Avro datum per value, with its fields as columns; a tombstone is a row of nulls.

    With a `registry`, values begin with the number of the schema that wrote them, which may be older or newer than `schema`, the
    reader's. If that is None, the reader's schema is the newest one of the `subjects`.
    """

    def __init__(self, schema: AvroSchema | None, registry: SchemaRegistry | None, subjects: Sequence[str], operator: str) -> None:
        self._schema, self._registry, self._subjects, self._operator = schema, registry, tuple(subjects), operator
        self._writers: dict[int, Any] = {}
        """The schema for fastavro, by the number of each writer's schema."""
        self._promoted = set[int]()
        """The numbers of the schemas whose whole numbers are read as floats."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_writers": {}}

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
        from fastavro.read import SchemaResolutionError

        assert self._schema is not None
        try:
            rows = [self._empty if value is None else self._row(value) for value in values]
        except SchemaResolutionError as error:
            raise UndecodableError(f"its schema doesn't match the reader's: {error}") from error
        except DAMAGE as error:
            raise UndecodableError(f"its schema didn't write it: {type(error).__name__}: {error}") from error
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
        from fastavro import schemaless_reader

        assert self._schema is not None
        file, writer, reader = io.BytesIO(value), self._schema.plain, None
        if self._registry is not None:
            writer = self._writer(value, self._registry)
            reader = None if writer is self._schema.plain else self._schema.plain
            file.seek(HEADER_BYTES)
        row = schemaless_reader(file, writer, reader)
        if reader is not None and number_of(value) in self._promoted:
            file.seek(HEADER_BYTES)
            problem = inexact(schemaless_reader(file, writer, None), row, self._schema.expanded)
            if problem is not None:
                raise UndecodableError(f"{problem}; read it with a schema that says long")
        if file.tell() != len(value):
            raise UndecodableError(f"its schema wrote {file.tell()} of its {len(value)} bytes")
        return row

    def _writer(self, value: bytes, registry: SchemaRegistry) -> Any:
        """Return the schema that wrote a value. Raises UndecodableError if there is none that fits the reader's."""
        number = number_of(value)
        if number is None:
            raise UndecodableError("it doesn't begin with a zero and the number of a schema: was it written with a registry?")
        writer = self._writers.get(number)
        if writer is None:
            writer = self._writers[number] = self._found(number, registry)
        if isinstance(writer, _Unusable):
            raise UndecodableError(writer.problem)
        return writer

    def _found(self, number: int, registry: SchemaRegistry) -> Any:
        assert self._schema is not None
        try:
            found = registry.schema(number)
        except UnknownSchemaError as error:
            return _Unusable(str(error))
        problem = misread(found.expanded, self._schema.expanded)
        if problem is not None:
            return _Unusable(f"schema {number} can't be read with the reader's schema: {problem}")
        if promotes(found.expanded, self._schema.expanded):
            self._promoted.add(number)
        return self._schema.plain if found.plain == self._schema.plain else found.plain


class _Unusable:
    """The reason why a schema can't be used, kept in its place."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
