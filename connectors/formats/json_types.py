"""The types in which JSON is read, and their conversion to the columns' types, which changes no value silently.

Arrow makes 1e300 infinite in a float32. So such columns are read as float64, and converted by a cast that refuses the value. Times
whose type is inferred have the zone UTC if their texts have zones: Arrow would drop it. They are read as texts, and converted by a
cast that refuses a text with a zone among those without, and the reverse.

>>> types = JsonTypes(pa.schema({"x": pa.float32()}), declared=pa.schema({"x": pa.float32()}))
>>> types.read.field("x").type, types.converted(pa.record_batch({"x": [0.5]})).schema.field("x").type
(DataType(double), DataType(float))
>>> types.converted(pa.record_batch({"x": [0.5, 1e300]}))
Traceback (most recent call last):
    ...
evenflow.connectors.formats.floats.ChangedValue: column `x`: 1e+300 is too large for float; give it another type in `schema`
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...engine.types.casting import cast
from .floats import ITEM, ChangedValue, FloatPart, check_integer, float_parts, item_in, type_in

_LONG = r"-?[0-9]{16,}\s*"
"""An integer that may be beyond 2**53."""

_ANYWHERE = rf"[:\[,\s]{_LONG}[,\]}}]"
_PLAIN = re.compile(r"[A-Za-z0-9_ -]+")
_NO_NUMBERS = re.compile(r'"(?:[^"\\]|\\.)*"|-?Inf(?:inity)?|-?NaN')
"""Texts, and the words for numbers that Arrow reads and Python doesn't."""


class JsonTypes:
    """The types of JSON that becomes columns of `schema`. Types that `declared` lacks were inferred. Picklable."""

    def __init__(self, schema: pa.Schema, declared: pa.Schema) -> None:
        self._schema = schema
        self.read = read_types(schema, declared)
        self._parts = [part for part in float_parts(self.read, declared) if part.inferred]

    def may_differ(self, rows: pa.RecordBatch) -> bool:
        """Return True if `check` has to compare the rows with their text."""
        return any(part.may_differ(rows) for part in self._parts)

    def check(self, lines: bytes, rows: pa.RecordBatch) -> None:
        """Raise ChangedValue if an integer in the text of the rows isn't the float that was read from it."""
        parts = [part for part in self._parts if part.may_differ(rows)]
        if not parts or not _has_long_integer(lines, parts):
            return
        for row, value in enumerate(_objects(lines)):
            for part in parts:
                for number in part.numbers(value.get(part.column)):
                    if isinstance(number, int):
                        try:
                            check_integer(number, float(number), part)
                        except ChangedValue as error:
                            raise ChangedValue(error.problem, row) from None

    def converted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows that were read in the types `read` with those of the schema. Raises ChangedValue."""
        rows = rows.select(self._schema.names)
        for place, field in enumerate(self._schema):
            column = rows.column(place)
            if column.type != field.type:
                rows = rows.set_column(place, field.name, _converted(column, field))
        return rows


def read_types(schema: pa.Schema, declared: pa.Schema) -> pa.Schema:
    """Return the types in which Arrow reads JSON that becomes columns of `schema`."""
    return pa.schema([field.with_type(_read_type(field.type, type_in(declared, field.name))) for field in schema])


def restored(found: pa.Schema, declared: pa.Schema) -> pa.Schema:
    """Return the types that were found by reading `declared` columns in the types of `read_types`."""
    return pa.schema([field.with_type(_restored(field.type, type_in(declared, field.name))) for field in found])


def with_zones(found: pa.Schema, declared: pa.Schema, read: Callable[[pa.Schema], pa.RecordBatch]) -> pa.Schema:
    """Return the inferred schema with the zone UTC for times whose texts have zones. `read` returns rows with the given types."""
    texts = read_types(found, declared)
    if texts == found or not any(map(_has_times, found.types)):
        return found
    rows = read(texts)
    return pa.schema([field.with_type(_zoned(field.type, type_in(declared, field.name), rows.column(field.name))) for field in found])


def _read_type(kind: pa.DataType, declared: pa.DataType | None) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_read_type(field.type, type_in(declared, field.name))) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_read_type(kind.value_type, item_in(declared))))
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return pa.float64()
    if pa.types.is_timestamp(kind) and declared is None:
        return pa.string()
    return kind


def _restored(found: pa.DataType, declared: pa.DataType | None) -> pa.DataType:
    if pa.types.is_struct(found):
        return pa.struct([field.with_type(_restored(field.type, type_in(declared, field.name))) for field in found])
    if pa.types.is_list(found):
        return pa.list_(found.value_field.with_type(_restored(found.value_type, item_in(declared))))
    return found if declared is None else declared


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_times(field.type) for field in kind)
    return bool(pa.types.is_timestamp(kind)) or (pa.types.is_list(kind) and _has_times(kind.value_type))


def _zoned(kind: pa.DataType, declared: pa.DataType | None, column: pa.Array) -> pa.DataType:
    if pa.types.is_struct(kind):
        parts = zip(kind, column.flatten(), strict=True)
        return pa.struct([field.with_type(_zoned(field.type, type_in(declared, field.name), part)) for field, part in parts])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_zoned(kind.value_type, item_in(declared), column.flatten())))
    if declared is not None or not pa.types.is_timestamp(kind) or column.null_count == len(column):
        return kind
    zoned = pa.timestamp(kind.unit, "UTC")
    try:
        column.cast(zoned)
    except pa.ArrowInvalid:
        return kind
    return zoned


def _converted(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return cast(column, field.type)
    except pa.ArrowInvalid:
        row = _first_refused(column, field.type)
        try:
            return cast(column.slice(row, 1), field.type)
        except pa.ArrowInvalid as error:
            raise ChangedValue(f"column `{field.name}`: {str(error).rstrip('.')}; give it another type in `schema`", row) from error


def _first_refused(column: pa.Array, kind: pa.DataType) -> int:
    """Return the row of the first value that can't be cast, given that there is one."""
    fits, fails = 0, len(column)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        try:
            cast(column.slice(fits, middle - fits), kind)
        except pa.ArrowInvalid:
            fails = middle
        else:
            fits = middle
    return fits


def _has_long_integer(lines: bytes, parts: list[FloatPart]) -> bool:
    """Return True if the lines may have an integer beyond 2**53 in one of the columns: by a search that is as fast as reading."""
    patterns = {_pattern(part) for part in parts}
    pattern = _ANYWHERE if _ANYWHERE in patterns or b"\\u" in lines else "|".join(sorted(patterns))
    return bool(pc.match_substring_regex(pa.array([lines], pa.large_binary()), pattern)[0].as_py())


def _pattern(part: FloatPart) -> str:
    name = (part.column, *part.path)[-1]
    if name == ITEM:
        return rf"[\[,]\s*{_LONG}[,\]]"
    return rf'"{name}"\s*:\s*{_LONG}[,}}]' if _PLAIN.fullmatch(name) else _ANYWHERE


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of lines that Arrow has read."""
    text = lines.decode("utf-8", "replace")
    if "Inf" in text or "NaN" in text:
        text = _NO_NUMBERS.sub(lambda found: found[0] if found[0].startswith('"') else "null", text)
    decode, place = json.JSONDecoder(strict=False).raw_decode, 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        value, place = decode(text, place)
        yield value
