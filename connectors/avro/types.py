"""Avro types as Arrow types.

>>> arrow_type(["null", {"type": "array", "items": "int"}])
ListType(list<item: int32>)
>>> arrow_type({"type": "long", "logicalType": "timestamp-millis"})
TimestampType(timestamp[ms, tz=UTC])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

VALUE = "value"
"""The only column of a schema that isn't a record."""

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}

TIMES: dict[tuple[str, Any], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    **{("long", f"timestamp-{unit}"): pa.timestamp(short, "UTC") for unit, short in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))},
    **{("long", f"local-timestamp-{unit}"): pa.timestamp(short) for unit, short in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))},
}
"""Logical types that are encoded as numbers."""

MOST_DIGITS = 76
"""The most digits of an Arrow decimal."""


class AvroTypeError(Exception):
    """A type has no column; the text names the field."""


def arrow_type(kind: Any, path: str = "") -> pa.DataType:
    """Return the Arrow type of an expanded Avro type. `path`: its place in the schema. Raises AvroTypeError if there is none."""
    kind = without_null(kind)
    if isinstance(kind, list):
        raise AvroTypeError(
            f"{_field(path)} is a union of {', '.join(map(_name, kind))}, and a column has one type and null; "
            "read it with a schema that names one of them"
        )
    if isinstance(kind, dict):
        return _arrow_type(kind, path)
    if kind not in _PRIMITIVES:
        raise AvroTypeError(f"{_field(path)} is a `{kind}` within a `{kind}`, and a column can't hold itself")
    return _PRIMITIVES[kind]


def _arrow_type(kind: Mapping[str, Any], path: str) -> pa.DataType:
    logical = kind.get("logicalType")
    match kind["type"]:
        case "record" | "error":
            return pa.struct([(field["name"], arrow_type(field["type"], _joined(path, field["name"]))) for field in kind["fields"]])
        case "array":
            return pa.list_(arrow_type(kind["items"], _joined(path, "items")))
        case "map":
            return pa.map_(pa.string(), arrow_type(kind["values"], _joined(path, "values")))
        case "enum":
            return pa.string()
        case "bytes" | "fixed" if logical == "decimal":
            return _decimal(kind, path)
        case "fixed":
            return pa.binary(kind["size"])
        case str() as name if (name, logical) in TIMES:
            return TIMES[name, logical]
        case inner:
            return arrow_type(inner, path)


def without_null(kind: Any) -> Any:
    """Return the only other type of a union with null, and any other type unchanged."""
    if not isinstance(kind, list):
        return kind
    others = [part for part in kind if not is_null(part)]
    return others[0] if len(others) == 1 else others or "null"


def is_null(kind: Any) -> bool:
    """Return True for the type of nulls."""
    return bool(kind == "null" or (isinstance(kind, dict) and kind["type"] == "null"))


def _decimal(kind: Mapping[str, Any], path: str) -> pa.DataType:
    precision, scale = kind.get("precision"), kind.get("scale", 0)
    if not isinstance(precision, int) or not 0 < precision <= MOST_DIGITS:
        raise AvroTypeError(f"{_field(path)} is a decimal of {precision} digits; a column's has between 1 and {MOST_DIGITS}")
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _field(path: str) -> str:
    return f"field `{path}`" if path else "it"


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _name(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind.get("name", kind["type"]))
