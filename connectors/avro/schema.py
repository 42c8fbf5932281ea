"""An Avro schema in its three forms: as given by a user or a registry, as fastavro needs it, and as columns.

>>> schema = AvroSchema({"type": "record", "name": "Click", "fields": [{"name": "at", "type": {"type": "long", "logicalType": "date"}}]})
>>> schema.columns.names
['at']
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from ...engine.errors import FlowError
from .types import VALUE, AvroTypeError, arrow_type

AvroLike: TypeAlias = str | Mapping[str, Any]
"""A schema as JSON text or as the parsed value."""


class SchemaError(Exception):
    """It is no Avro schema, or one that has no columns; the text says why."""


class AvroSchema:
    """A parsed Avro schema. Picklable. `others`: the schemas that it refers to by name, each after those it refers to itself.

    `plain` is for fastavro, which then reads and writes times as numbers; `expanded` replaces each name by the type that it names.
    Raises SchemaError for an invalid schema.
    """

    def __init__(self, schema: AvroLike, others: Sequence[AvroLike] = ()) -> None:
        from fastavro.schema import SchemaParseException, parse_schema

        try:
            parts: list[Any] = [json.loads(part) if isinstance(part, str) else part for part in (*others, schema)]
            names: dict[str, Any] = {}
            self.plain: Any = [parse_schema(_without_times(part), names) for part in parts][-1]
            names = {}
            self.expanded: Any = [parse_schema(part, names, expand=True) for part in parts][-1]
        except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise SchemaError(f"it is no Avro schema: {type(error).__name__}: {error}") from error
        self.text = json.dumps(parts[-1])

    def checked(self) -> AvroSchema:
        """Return this schema. Raises SchemaError if it has no columns.

        Values written by a schema without columns may still be readable with a reader's schema.
        """
        try:
            names = self.columns.names
        except AvroTypeError as error:
            raise SchemaError(str(error)) from error
        if len(set(names)) < len(names) or not names:
            raise SchemaError(f"a record with the fields {names} has no columns: it needs some, each once")
        return self

    @cached_property
    def row_type(self) -> pa.DataType:
        """The type of its values: a struct for a record."""
        return arrow_type(self.expanded)

    @property
    def is_record(self) -> bool:
        """True if its fields are the columns; values of any other type form the column `value`."""
        return bool(pa.types.is_struct(self.row_type))

    @property
    def columns(self) -> pa.Schema:
        """Name and type of each column."""
        return pa.schema(list(self.row_type)) if self.is_record else pa.schema({VALUE: self.row_type})


def given_schema(schema: Any, operator: str) -> AvroSchema:
    """Parse the schema that a user gave. Raises FlowError if it is invalid."""
    try:
        return AvroSchema(schema).checked()
    except SchemaError as error:
        raise FlowError(f"operator `{operator}`: schema={schema!r:.500}: {error}") from error


def check_installed(operator: str) -> None:
    """Raise FlowError if fastavro is missing."""
    try:
        import fastavro  # noqa: F401 -- whether it can be imported is the question
    except ImportError as error:
        raise FlowError(f"operator `{operator}`: Avro needs the package fastavro: pip install 'evenflow[kafka]'") from error


def _without_times(schema: Any) -> Any:
    """Return the schema without logical types other than decimals.

    Arrow converts the numbers to times, and covers more years than Python's datetime.
    """
    if isinstance(schema, list):
        return [_without_times(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name != "logicalType" or value == "decimal"}
    parts = {name: _without_times(kept[name]) for name in ("type", "items", "values") if name in kept}
    if isinstance(kept.get("fields"), list):
        parts["fields"] = [_without_times(field) for field in kept["fields"]]
    return {**kept, **parts}
