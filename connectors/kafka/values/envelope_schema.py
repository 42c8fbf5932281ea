"""The columns of a table, from the schema that Kafka Connect puts around a change event in JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .decoding import UndecodableError

PLAIN = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "float64": pa.float64(),
    "string": pa.string(),
}
"""The types of values without a meaning of their own, by their names in Kafka Connect."""

NAMED = {
    "io.debezium.time.Date": pa.date32(),
    "io.debezium.time.Timestamp": pa.timestamp("ms"),
    "io.debezium.time.MicroTimestamp": pa.timestamp("us"),
    "io.debezium.time.NanoTimestamp": pa.timestamp("ns"),
    "org.apache.kafka.connect.data.Date": pa.date32(),
    "org.apache.kafka.connect.data.Timestamp": pa.timestamp("ms"),
}
"""The types of numbers that are times."""

ZONED = "io.debezium.time.ZonedTimestamp"
"""The name of texts that are times with a zone."""


@dataclass(frozen=True, slots=True)
class EventColumns:
    """The columns of a table, and the types in which JSON has them."""

    columns: pa.Schema
    read: pa.Schema


def columns_of_event(value: bytes) -> EventColumns | None:
    """Return the columns of the row in an event; None if it has no schema. Raises UndecodableError for a type without a counterpart."""
    try:
        fields = json.loads(value)["schema"]["fields"]
        row = next(field["fields"] for field in fields if field["field"] == "after")
        described = [(field["field"], field["type"], field.get("name")) for field in row]
    except (ValueError, TypeError, LookupError, StopIteration):
        return None
    kinds = {name: _kinds(name, kind, meaning) for name, kind, meaning in described}
    return EventColumns(
        pa.schema([(name, column) for name, (column, _) in kinds.items()]), pa.schema([(name, read) for name, (_, read) in kinds.items()])
    )


def _kinds(name: str, kind: Any, meaning: Any) -> tuple[pa.DataType, pa.DataType]:
    """Return the type of a column, and the type in which JSON has it."""
    if not isinstance(kind, str) or kind not in PLAIN:
        decimal = " (decimal.handling.mode=string makes texts of decimals)" if kind == "bytes" else ""
        raise UndecodableError(f"column `{name}` is {kind!r:.100} in the events, which has no type of column{decimal}")
    read = PLAIN[kind]
    if meaning == ZONED:
        return pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")
    return NAMED.get(str(meaning), read), read
