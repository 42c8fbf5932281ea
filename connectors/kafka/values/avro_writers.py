"""Reading of Avro data: the schemas that wrote them, from a registry, and the data themselves."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from struct import error as StructError  # noqa: N812 -- its name there says nothing
from typing import Any, Generic, TypeVar

from ...avro.registry import HEADER_BYTES, SchemaRegistry, UnknownSchemaError, number_of
from ...avro.schema import AvroSchema
from .decoding import UndecodableError

_DAMAGE = (EOFError, IndexError, KeyError, OverflowError, RecursionError, StructError, TypeError, ValueError)
"""Exceptions that fastavro raises for bytes that the schema didn't write."""

T = TypeVar("T")


class WriterSchemas(Generic[T]):
    """The schemas that wrote values, by the number at the beginning of each. The registry is asked once per number.

    Picklable, without the schemas that it has fetched.
    """

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._found: dict[int, T | _Unusable] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": {}}

    def of(self, value: bytes, prepare: Callable[[int, AvroSchema], T]) -> T:
        """Return what `prepare` makes of the number and the schema that wrote `value`; it is called once per number.

        Raises UndecodableError if there is no such schema, and if `prepare` raises it.
        """
        number = number_of(value)
        if number is None:
            raise UndecodableError("it doesn't begin with a zero and the number of a schema: was it written with a registry?")
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = self._prepared(number, prepare)
        if isinstance(found, _Unusable):
            raise UndecodableError(found.problem)
        return found

    def _prepared(self, number: int, prepare: Callable[[int, AvroSchema], T]) -> T | _Unusable:
        try:
            return prepare(number, self._registry.schema(number))
        except (UnknownSchemaError, UndecodableError) as error:
            return _Unusable(str(error))


class _Unusable:
    """The reason why a schema can't be used, kept in its place."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


def datum(value: bytes, writer: Any, reader: Any = None, *, first: int = HEADER_BYTES) -> Any:
    """Read the datum that begins at byte `first` with fastavro's schemas. Raises UndecodableError."""
    read, unresolved = _fastavro()
    file = io.BytesIO(value)
    file.seek(first)
    try:
        row = read(file, writer, reader)
    except unresolved as error:
        raise UndecodableError(f"its schema doesn't match the reader's: {error}") from error
    except _DAMAGE as error:
        raise UndecodableError(f"its schema didn't write it: {type(error).__name__}: {error}") from error
    if file.tell() != len(value):
        raise UndecodableError(f"its schema wrote {file.tell()} of its {len(value)} bytes")
    return row


@cache
def _fastavro() -> tuple[Callable[..., Any], type[Exception]]:
    """Return fastavro's reader, and its exception for schemas that don't match."""
    from fastavro import schemaless_reader
    from fastavro.read import SchemaResolutionError

    return schemaless_reader, SchemaResolutionError
