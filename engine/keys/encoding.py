"""Encoding of the keys of a batch: each distinct key once, and for each row the code of its key.

Integers in a narrow range use a table (about 2 ns a row), other integers and several columns a hash table (about 15 ns), and
all others Arrow's dictionary encoding (10 to 40 ns). So every later step costs per distinct key. A null is a key of its own,
as in SQL's GROUP BY.

>>> import pyarrow as pa
>>> keys = encode_keys(pa.record_batch({"dest": ["JFK", "LAX", "JFK"]}), ("dest",), "count")
>>> keys.codes.tolist(), keys.values()
([0, 1, 0], ['JFK', 'LAX'])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...state.hashing import UnhashableKey, as_bytes, combine, group_of, hash64
from ...state.words import FEW, Where, Words, grouped, numbered
from ..errors import RecordError
from ..types.exact import Inexact, exactly
from ..types.python_values import REFUSALS
from ..types.widening import value_type, wider
from .equality import differ_in_unit, whole_and_rest
from .key_values import column_key_values, key_value_column
from .unkeyed import EVERYTHING


@dataclass(frozen=True, slots=True)
class EncodedKeys:
    """The distinct keys of a batch: `columns`, each of shape (count,), and `codes`, each row's index in them, shape (rows,)."""

    codes: npt.NDArray[Any]
    columns: list[pa.Array]
    count: int

    def values(self) -> list[Any]:
        """Return the distinct keys as Python values, tuples if the key has several columns."""
        return key_values(self.columns)


def encode_keys(rows: pa.RecordBatch, names: tuple[str, ...], operator: str) -> EncodedKeys:
    """Encode the keys of `rows` in the columns `names`. Raises RecordError for a missing column or a type that can't be a key."""
    try:
        columns = [_plain(key_column(rows, name, operator)) for name in names]
        return _encode(columns[0]) if len(columns) == 1 else _encode_several(columns)
    except pa.ArrowNotImplementedError as error:
        types = ", ".join(f"`{name}` {rows.schema.field(name).type}" for name in names)
        raise RecordError(operator, f"this can't be a key: {types}; use numbers, strings, bytes, dates or timestamps") from error


def key_column(rows: pa.RecordBatch, name: str, operator: str) -> pa.Array:
    """Return a key column of `rows`. Raises RecordError if it is missing, or has a date64 that is no whole day."""
    if name == EVERYTHING:
        return pa.nulls(rows.num_rows)
    index = rows.schema.get_field_index(name)
    if index < 0:
        raise RecordError(operator, f"no key column `{name}`; there are: {', '.join(rows.schema.names)}")
    column = rows.column(index)
    if value_type(column.type).id == _DATE64:
        _refuse_parts_of_days(rows, index, operator)
    return column


def _refuse_parts_of_days(rows: pa.RecordBatch, index: int, operator: str) -> None:
    """Raise RecordError for milliseconds that are no whole day: as dates they would be equal, as columns not."""
    column = rows.column(index)
    days = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    counts = days.view(pa.int64()).fill_null(0).to_numpy()
    wrong = np.flatnonzero(counts % DAY)
    if len(wrong):
        place = int(wrong[0])
        problem = f"the key column `{rows.schema.names[index]}` is date64, and {counts[place]} ms since 1970 is no whole day"
        raise RecordError(operator, f'{problem}; cast it to "timestamp[ms]"', record=rows.slice(place, 1).to_pylist()[0])


def key_groups(columns: list[pa.Array], groups: int, operator: str) -> npt.NDArray[Any]:
    """Return the key group of each row of the key columns, shape (rows,). Raises RecordError for a type that can't be a key."""
    return group_of(key_hashes(columns, operator), groups)


def key_hashes(columns: Sequence[pa.Array], operator: str) -> npt.NDArray[np.uint64]:
    """Return hash64 of each row of the key columns, shape (rows,). Raises RecordError for a type that can't be a key."""
    try:
        hashes = [hash64(column) for column in columns]
    except UnhashableKey as error:
        raise RecordError(operator, f"this key can't be hashed: {error}") from error
    return hashes[0] if len(hashes) == 1 else combine(hashes)


def key_values(columns: Sequence[pa.Array]) -> list[Any]:
    """Return rows of key columns as Python values: the value itself, or a tuple if there are several columns."""
    if len(columns) == 1:
        return column_key_values(columns[0])
    return list(zip(*(column_key_values(column) for column in columns), strict=True))


def plain_floats(column: pa.Array) -> pa.Array:
    """Replace -0.0 by the 0.0 that it equals, and every NaN by the same NaN."""
    column = pc.add(column, pa.scalar(0.0, column.type))
    unlike = pc.is_nan(column)
    return pc.if_else(unlike, pa.scalar(nan, column.type), column) if pc.any(unlike).as_py() else column


def comparable(one: pa.DataType, other: pa.DataType) -> bool:
    """Return True if keys of these types can be equal and compared; equal keys of such types have equal hashes.

    Timestamps with a zone are instants, so they don't compare with those without.
    """
    if pa.types.is_null(one) or pa.types.is_null(other):
        return True
    return _family(one) == _family(other)


def _family(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    families = {
        "integer": pa.types.is_integer, "boolean": pa.types.is_boolean, "float": pa.types.is_floating, "decimal": pa.types.is_decimal,
        "date": pa.types.is_date, "time": pa.types.is_time, "duration": pa.types.is_duration,
    }  # fmt: skip
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamp with a zone"
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(check(kind) for check in text):
        return "string"
    return next((name for name, check in families.items() if check(kind)), "bytes" if "binary" in str(kind) else str(kind))


class KeyTypes:
    """The types so far of the key columns `names` of `operator`, for converting Python values back to columns.

    The types widen with the keys.
    """

    def __init__(self, operator: str, names: Sequence[str] = ()) -> None:
        self.operator, self._names = operator, names
        self.types: tuple[pa.DataType, ...] = ()
        """The types so far; empty before the first keys."""

    def learn(self, columns: Sequence[pa.Array]) -> None:
        """Widen the types to hold these key columns. Raises RecordError if a column's types have no common key type."""
        self.types = self.with_types(columns)

    def with_types(self, columns: Sequence[pa.Array]) -> tuple[pa.DataType, ...]:
        """Return the types that `learn` would set."""
        if len(self.types) == len(columns) and all(map(_is_of, columns, self.types)):
            return self.types
        before = self.types or tuple(pa.null() for _ in columns)
        kinds = []
        for place, (kind, column) in enumerate(zip(before, columns, strict=True)):
            both = key_type(kind, column.type)
            if both is None:
                raise mixed_keys(self.operator, self._names[place] if self._names else None, {kind, column.type})
            kinds.append(both)
        return tuple(kinds)

    def columns(self, keys: list[Any]) -> list[pa.Array]:
        """Convert keys to columns; the inverse of `key_values`.

        Raises RecordError for a key that would change in a widened type.
        """
        if len(self.types) == 1:
            return [self.column(keys, 0)]
        return [self.column([key[i] for key in keys], i) for i in range(len(self.types))]

    def column(self, values: list[Any], place: int) -> pa.Array:
        """Convert the values of the key column at `place` to a column.

        Raises RecordError for a value that the type of the column can't hold.
        """
        try:
            return key_value_column(values, self.types[place])
        except REFUSALS as error:
            raise self.refusal(place, error) from error

    def refusal(self, place: int, error: Exception) -> RecordError:
        """Return the error for a key column whose type widened to one that can't hold all of its keys."""
        name = f"the key column `{self._names[place]}`" if self._names else "a key column"
        return RecordError(self.operator, f"{name} is {self.types[place]}, which can't hold all of its keys: {error}; give it one type")


def _is_of(column: pa.Array, kind: pa.DataType) -> bool:
    return column.type is kind or bool(column.type.equals(kind))


def key_type(kind: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type of a key column that came with both types; None if they can't be in one key column.

    Numbers widen, and so do texts, bytes, and times, which take the finest unit.
    """
    if pa.types.is_null(kind) or value_type(kind) == value_type(other):
        return other if pa.types.is_null(kind) else kind
    if pa.types.is_null(other):
        return kind
    mine, theirs = value_type(kind), value_type(other)
    if pa.types.is_temporal(mine):
        return wider(mine, theirs) if comparable(mine, theirs) else None
    return wider(mine, theirs) if not pa.types.is_nested(mine) else None


def mixed_keys(operator: str, name: str | None, kinds: Iterable[pa.DataType]) -> RecordError:
    """Return the error for a key column whose types have no common key type."""
    column = "a key column" if name is None else f"the key column `{name}`"
    found = " and ".join(sorted(str(kind) for kind in kinds))
    return RecordError(operator, f"{column} has values of the types {found}: give it one type, for example by schema=")


def compared_keys(columns: Sequence[pa.Array], name: str, operator: str) -> list[pa.Array]:
    """Concatenate pieces of the key column `name` for comparison: as one column, or as two for times whose units differ.

    Times of any range can be compared so. Raises RecordError if the types have no common key type, or a number would change in it.
    """
    if not differ_in_unit(columns):
        return [joined_keys(columns, name, operator)]
    _joined_type(columns, name, operator)
    return [pa.concat_arrays(parts) for parts in zip(*map(whole_and_rest, columns), strict=True)]


def joined_keys(columns: Sequence[pa.Array], name: str, operator: str) -> pa.Array:
    """Concatenate pieces of the key column `name` in a type that holds all. Raises RecordError if no type does."""
    kind = _joined_type(columns, name, operator)
    try:
        return pa.concat_arrays([exactly(column, kind) for column in columns])
    except Inexact as error:
        raise RecordError(operator, f"the key column `{name}`: {error}: give it one type, for example by schema=") from error


def _joined_type(columns: Sequence[pa.Array], name: str, operator: str) -> pa.DataType:
    kind: pa.DataType = pa.null()
    for column in columns:
        both = key_type(kind, column.type)
        if both is None:
            raise mixed_keys(operator, name, {kind, column.type})
        kind = both
    return kind


def compact(codes: npt.NDArray[Any], span: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the distinct codes in rising order, and each code's index among them; `span` is an upper bound of the codes.

    Linear in rows + span if the span is small enough for a table, otherwise by sorting.
    """
    if span > _table_size(len(codes)):
        present, inverse = np.unique(codes, return_inverse=True)
        return present, inverse
    seen = np.zeros(span, np.bool_)
    seen[codes] = True
    present = np.flatnonzero(seen)
    if len(present) == span:
        return present, codes
    place = np.empty(span, np.int64)
    place[present] = np.arange(len(present))
    return present, place[codes]


def _table_size(rows: int) -> int:
    """Return the largest table that is worth its memory for `rows` rows."""
    return 8 * rows + 4096


def _plain(column: pa.Array) -> pa.Array:
    """Return the column without a dictionary, and floats with one zero and one NaN."""
    if column.type.id == _DICTIONARY:
        column = column.cast(column.type.value_type)
    return plain_floats(column) if column.type.id in _FLOATS else column


DAY = 86_400_000
"""The milliseconds of a day."""

_DATE64 = pa.date64().id
_DICTIONARY, _NULL, _TIMESTAMP = pa.dictionary(pa.int8(), pa.int8()).id, pa.null().id, pa.timestamp("us").id
_FLOATS = frozenset({pa.float32().id, pa.float64().id})
_INTEGERS = frozenset(kind.id for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()))
"""Types of integers whose values fit into signed 64 bits."""

_TEXTS = frozenset({pa.string().id, pa.large_string().id, pa.binary().id, pa.large_binary().id})
_LISTED = frozenset({*_TEXTS, *_INTEGERS, pa.uint64().id, pa.bool_().id})


def _encode(column: pa.Array) -> EncodedKeys:
    if column.type.id == _NULL:
        return EncodedKeys(np.zeros(len(column), np.int64), [column[:1]], min(1, len(column)))
    integers = integers_of(column)
    if integers is None:
        if (few := _few(column)) is not None:
            return _at(*few, [column])
        encoded = column.dictionary_encode(null_encoding="encode")
        return EncodedKeys(encoded.indices.to_numpy(), [encoded.dictionary], len(encoded.dictionary))
    low, span = range_of(integers)
    if span > _table_size(len(integers)):
        return _at(*grouped(integers.view(np.uint64)[np.newaxis]), [column])
    present, codes = compact(integers - low, span)
    keys = pa.array(present + low)
    return EncodedKeys(codes, [keys if keys.type == column.type else keys.cast(column.type)], len(present))


def _few(column: pa.Array) -> tuple[Where, Where] | None:
    """Group a few values as `grouped` does, by a Python dict; return None if that doesn't apply.

    It applies to types whose values Python distinguishes as Arrow does.
    """
    if len(column) > FEW or column.type.id not in _LISTED:
        return None
    return numbered(as_bytes(column) if column.type.id in _TEXTS else column.to_pylist())


def _at(first: Where, codes: Where, columns: list[pa.Array]) -> EncodedKeys:
    """Return the keys in the rows `first`."""
    if len(first) == len(codes):
        return EncodedKeys(codes, columns, len(codes))
    where = pa.array(first)
    return EncodedKeys(codes, [column.take(where) for column in columns], len(first))


def _encode_several(columns: list[pa.Array]) -> EncodedKeys:
    """Number the rows by each column first. If there are few possible combinations, a table finds the distinct ones."""
    numbered = [_numbered(column) for column in columns]
    spans = [span for _, span in numbered]
    combinations = prod(spans)
    words = np.stack([numbers for numbers, _ in numbered])
    if combinations < 1 << 64:
        words = _combined(words, spans)
    if combinations > _table_size(words.shape[1]):
        return _at(*grouped(words), columns)
    present, codes = compact(words[0].view(np.int64), combinations)
    first = np.empty(len(present), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    where = pa.array(first)
    return EncodedKeys(codes, [column.take(where) for column in columns], len(first))


def _numbered(column: pa.Array) -> tuple[npt.NDArray[np.uint64], int]:
    """Return a number for each value, equal ones for equal values, and the count of possible numbers."""
    numbers: npt.NDArray[np.uint64] = np.zeros(len(column), np.uint64)
    if column.type.id == _NULL:
        return numbers, 1
    integers = integers_of(column)
    if integers is None:
        if (few := _few(column)) is not None:
            return few[1].view(np.uint64), max(1, len(few[0]))
        encoded = column.dictionary_encode(null_encoding="encode")
        numbers = encoded.indices.to_numpy().astype(np.uint64)
        return numbers, max(1, len(encoded.dictionary))
    low, span = range_of(integers)
    return np.subtract(integers, low).view(np.uint64), span


def _combined(words: Words, spans: Sequence[int]) -> Words:
    """Combine several words, each below its span, into one."""
    one = words[:1]
    for word, span in zip(words[1:], spans[1:], strict=True):
        one = one * np.uint64(span) + word
    return one


def integers_of(column: pa.Array) -> npt.NDArray[np.int64] | None:
    """Return the values as integers of 64 bits, None for columns that need a dictionary."""
    kind = column.type.id
    if kind == _TIMESTAMP:
        column = column.view(pa.int64())
    elif kind not in _INTEGERS:
        return None
    if column.null_count:
        return None
    integers: npt.NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return integers


def range_of(integers: npt.NDArray[np.int64]) -> tuple[np.int64, int]:
    """Return the lowest value, and the size of the range from it to the highest."""
    if not len(integers):
        return np.int64(0), 1
    low, high = integers.min(), integers.max()
    return low, int(high) - int(low) + 1
