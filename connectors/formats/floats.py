"""The floats of text formats, and the values that may differ from the number in the file.

Arrow rounds every number of a column of floats, and makes those infinite that are too large. A user who declares a float wants it
rounded, but not infinite. In a column whose type was inferred, an integer beyond 2**53 must not be rounded either: the column
held integers and floats, and no user chose to lose digits.

A column's largest value tells if it can have such a number; only then are texts compared.

>>> rows = pa.record_batch({"id": [1.5, 2.0**53], "share": [0.5, 1e300]})
>>> parts = float_parts(rows.schema, declared=pa.schema({"share": pa.float64()}))
>>> [part.shown for part in parts if part.may_differ(rows)]
['id']
>>> check_text("9007199254740993", 2.0**53, parts[0], pa.float64())
Traceback (most recent call last):
    ...
evenflow.connectors.formats.floats.ChangedValue: column `id` has 9007199254740993, which its inferred type double would change to ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isinf
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ITEM = "[]"
"""The step of a path from a list to its items."""

EXACT = 2.0**53
"""The least float with a neighbour among the integers that is no float."""

_INFINITE = frozenset({"inf", "infinity"})
_INTEGER = re.compile(r"[+-]?[0-9]+")


class ChangedValue(ValueError):
    """The error for a value of a file that its column's type would change. `row`: its index in the rows that were read."""

    def __init__(self, problem: str, row: int = 0) -> None:
        self.problem, self.row = problem, row
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class FloatPart:
    """A column of floats, or floats in the fields and lists of a column; `path` leads to them.

    `limit`: a smaller float is the number that the file has, or the one that it rounds to as its declared type says.
    """

    column: str
    path: tuple[str, ...]
    limit: float

    @property
    def inferred(self) -> bool:
        return self.limit == EXACT

    @property
    def shown(self) -> str:
        """The name for a message, such as `a.b[]`."""
        return self.column + "".join(step if step == ITEM else f".{step}" for step in self.path)

    def may_differ(self, rows: pa.RecordBatch) -> bool:
        """Return True if a value may differ from the number in the file; NaN may, because it hides larger values."""
        values = _floats(self._values(rows))
        return len(values) > 0 and not (values.max() < self.limit and values.min() > -self.limit)

    def compare(self, column: pa.Array, texts: pa.Array) -> None:
        """Raise ChangedValue if a value of a whole column isn't the number in its text."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        values = _floats(column)
        where = np.flatnonzero((np.abs(values) >= self.limit) & column.is_valid().to_numpy(zero_copy_only=False))
        integers = pc.ascii_is_decimal(pc.ascii_trim(texts.take(pa.array(where)), " \t+-")).to_numpy(zero_copy_only=False)
        for row in where[integers | np.isinf(values[where])].tolist():
            try:
                check_text(texts[row].as_py(), float(values[row]), self, column.type)
            except ChangedValue as error:
                raise ChangedValue(error.problem, row) from None

    def numbers(self, value: Any) -> Iterator[Any]:
        """Yield the numbers at the path in a column's value, as Python's own."""
        return _numbers(value, self.path)

    def _values(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the floats of all rows, and those below nulls."""
        column = rows.column(self.column)
        for step in self.path:
            column = column.values if step == ITEM else column.field(step)
        return column.dictionary if pa.types.is_dictionary(column.type) else column


def float_parts(schema: pa.Schema, declared: pa.Schema) -> list[FloatPart]:
    """Return all floats of `schema`; those that `declared` lacks were inferred."""
    return [
        FloatPart(field.name, path, EXACT if inferred else inf)
        for field in schema
        for path, inferred in _paths(field.type, type_in(declared, field.name))
    ]


def type_in(declared: pa.Schema | pa.DataType | None, name: str) -> pa.DataType | None:
    """Return the type of a column or field in a schema or a struct; None if it has none of that name."""
    if declared is None or (isinstance(declared, pa.DataType) and not pa.types.is_struct(declared)):
        return None
    return declared.field(name).type if declared.get_field_index(name) >= 0 else None


def item_in(declared: pa.DataType | None) -> pa.DataType | None:
    """Return the type of a list's items; None for other types."""
    return declared.value_type if declared is not None and pa.types.is_list(declared) else None


def check_text(text: str, value: float, part: FloatPart, kind: pa.DataType) -> None:
    """Raise ChangedValue if `value`, read from `text` as `kind`, isn't the number that its column should have."""
    bare = text.strip()
    if isinf(value):
        if bare.lstrip("+-").lower() not in _INFINITE:
            raise too_large(part.shown, bare, kind)
    elif part.inferred and _INTEGER.fullmatch(bare):
        check_integer(int(bare), value, part)


def check_integer(number: int, value: float, part: FloatPart) -> None:
    """Raise ChangedValue if the integer isn't the float that was read from it in an inferred column."""
    if number != int(value):
        raise ChangedValue(
            f"column `{part.shown}` has {number}, which its inferred type double would change to {int(value)}; give the column a type in "
            '`schema`: "decimal128(38, 6)" keeps such digits, "float64" rounds them'
        )


def too_large(column: str, number: str, kind: pa.DataType) -> ChangedValue:
    """Return the error for a number that became infinite."""
    larger = "string" if pa.types.is_float64(kind) else "float64"
    return ChangedValue(
        f'column `{column}` has {number:.200}, which is too large for its type {kind}; give it the type "{larger}" in `schema`'
    )


def _floats(column: pa.Array) -> npt.NDArray[np.floating[Any]]:
    """Return the values without a copy; those of nulls are arbitrary."""
    if not column.null_count:
        return column.to_numpy()  # type: ignore[no-any-return]
    values: npt.NDArray[np.floating[Any]] = np.frombuffer(column.buffers()[1], column.type.to_pandas_dtype())
    return values[column.offset : column.offset + len(column)]


def _paths(kind: pa.DataType, declared: pa.DataType | None) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the path of each float in a type, and True if it was inferred."""
    if pa.types.is_struct(kind):
        for field in kind:
            for path, inferred in _paths(field.type, type_in(declared, field.name)):
                yield (field.name, *path), inferred
    elif pa.types.is_list(kind):
        for path, inferred in _paths(kind.value_type, item_in(declared)):
            yield (ITEM, *path), inferred
    elif pa.types.is_dictionary(kind):
        yield from _paths(kind.value_type, declared)
    elif pa.types.is_float32(kind) or pa.types.is_float64(kind):
        yield (), declared is None


def _numbers(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if value is None:
        return
    if not path:
        yield value
    elif path[0] == ITEM:
        for item in value:
            yield from _numbers(item, path[1:])
    else:
        yield from _numbers(value.get(path[0]), path[1:])
