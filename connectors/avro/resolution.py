"""Checks of a reader's schema against the writer's, for cases in which Avro's resolution alone would give wrong values.

fastavro matches fields, promotes numbers and fills in defaults. It doesn't compare logical types, which aren't in the bytes: a
time in milliseconds would be read as one in microseconds. It also uses the text of a default for bytes as the value.

>>> millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
>>> misread(millis, micros)
'it is timestamp-millis where it was written, and timestamp-micros in the schema of the reader'

Avro promotes whole numbers to floats, which hold those near zero only: 2**24 and 2**53 are where the exact ones end.

>>> writer, reader = ({"type": "array", "items": kind} for kind in ("long", "float"))
>>> promotes(writer, reader), inexact([5, 2**24 + 1], [5.0, 2.0**24 + 1], reader)
(True, "field `items` is 16777217, which a float can't hold")
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from .types import is_null, without_null


def misread(writer: Any, reader: Any, path: str = "") -> str | None:
    """Return a description of a value that would be read wrongly under these expanded schemas, or None if all are read correctly."""
    writer, reader = without_null(writer), without_null(reader)
    if isinstance(writer, list):
        return next((problem for part in writer if (problem := misread(part, reader, path)) is not None), None)
    if not isinstance(writer, dict) or not isinstance(reader, dict):
        return None
    match writer["type"], reader["type"]:
        case (("record" | "error"), ("record" | "error")):
            return _misread_record(writer, reader, path)
        case "array", "array":
            return misread(writer["items"], reader["items"], f"{path}.items")
        case "map", "map":
            return misread(writer["values"], reader["values"], f"{path}.values")
    written, read = _logical(writer), _logical(reader)
    if written is None or read is None or written == read:
        return None
    return f"{_field(path)} is {written} where it was written, and {read} in the schema of the reader"


def promotes(writer: Any, reader: Any) -> bool:
    """Return True if a whole number may be read as a float that can't hold all of them."""
    writer, reader = without_null(writer), without_null(reader)
    if isinstance(writer, list):
        return any(promotes(part, reader) for part in writer)
    if isinstance(reader, list):
        return any(promotes(writer, part) for part in reader)
    match _type(writer), _type(reader):
        case (("record" | "error"), ("record" | "error")):
            written = {field["name"]: field["type"] for field in writer["fields"]}
            pairs = ((_written_name(field, written), field["type"]) for field in reader["fields"])
            return any(name is not None and promotes(written[name], kind) for name, kind in pairs)
        case "array", "array":
            return promotes(writer["items"], reader["items"])
        case "map", "map":
            return promotes(writer["values"], reader["values"])
        case pair:
            return pair in _INEXACT


def inexact(written: Any, read: Any, reader: Any, path: str = "") -> str | None:
    """Return a description of a whole number that isn't what was `written`, or None. Both values are of one datum."""
    reader = without_null(reader)
    if isinstance(written, int) and isinstance(read, float):
        holds = "float" if _type(reader) == "float" else "double"
        (kept,) = struct.unpack("f", struct.pack("f", read)) if holds == "float" else (read,)
        return None if int(kept) == written else f"{_field(path)} is {written}, which a {holds} can't hold"
    if isinstance(read, list) and _type(reader) == "array":
        pairs = [(ours, theirs, reader["items"], "items") for ours, theirs in zip(written, read, strict=True)]
    elif isinstance(read, dict) and _type(reader) == "map":
        pairs = [(written[key], value, reader["values"], "values") for key, value in read.items()]
    elif isinstance(read, dict) and _type(reader) in ("record", "error"):
        fields = [(_written_name(field, written), field) for field in reader["fields"]]
        pairs = [(written[name], read[field["name"]], field["type"], field["name"]) for name, field in fields if name is not None]
    else:
        pairs = []
    found = (inexact(ours, theirs, kind, f"{path}.{name}") for ours, theirs, kind, name in pairs)
    return next((problem for problem in found if problem is not None), None)


_INEXACT = {("int", "float"), ("long", "float"), ("long", "double")}


def _type(kind: Any) -> Any:
    return kind["type"] if isinstance(kind, dict) else kind


def _written_name(field: Mapping[str, Any], written: Mapping[str, Any]) -> str | None:
    """Return the name of a reader's field where it was written, None if it wasn't."""
    return next((name for name in (field["name"], *field.get("aliases", ())) if name in written), None)


def _misread_record(writer: Mapping[str, Any], reader: Mapping[str, Any], path: str) -> str | None:
    written = {field["name"]: field["type"] for field in writer["fields"]}
    for field in reader["fields"]:
        inner = f"{path}.{field['name']}"
        name = _written_name(field, written)
        if name is not None:
            problem = misread(written[name], field["type"], inner)
        elif field.get("default") not in (None, [], {}) and _has_bytes(field["type"]):
            problem = f"{_field(inner)} wasn't written, and its default has bytes, which isn't supported; leave the field out"
        else:
            problem = None
        if problem is not None:
            return problem
    return None


def _logical(kind: Mapping[str, Any]) -> str | None:
    logical = kind.get("logicalType")
    return f"decimal({kind.get('precision')}, {kind.get('scale', 0)})" if logical == "decimal" else logical


def _has_bytes(kind: Any) -> bool:
    if isinstance(kind, list):
        return any(_has_bytes(part) for part in kind if not is_null(part))
    if not isinstance(kind, dict):
        return bool(kind == "bytes")
    inner = [kind[part] for part in ("items", "values") if part in kind] + [field["type"] for field in kind.get("fields", ())]
    return kind["type"] in ("bytes", "fixed") or any(map(_has_bytes, inner))


def _field(path: str) -> str:
    return f"field `{path.lstrip('.')}`" if path else "it"
