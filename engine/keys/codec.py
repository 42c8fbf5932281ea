"""Encoding of keys as bytes, for state backends that don't keep Python objects: equal keys have equal bytes.

>>> types = KeyTypes("count")
>>> columns = [pa.array(["JFK", None]), pa.array([1, 2])]
>>> types.learn(columns)
>>> codec = KeyCodec(types)
>>> [column.to_pylist() for column in codec.columns(codec.pack(columns))]
[['JFK', None], [1, 2]]
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ...state.hashing import canonical
from ...state.packing import pack_values, unpack_values
from ..batch import column_values
from .encoding import KeyTypes, plain_floats
from .key_values import PER_SECOND

NANOSECONDS = PER_SECOND["ns"]


class KeyCodec:
    """A codec between key columns and msgpack of the key's value, or of the list of its values if it has several columns.

    `types` must have learned the columns. A whole float or decimal is packed as the integer that it equals, and a time as its
    nanoseconds, because a column's type may widen.
    """

    def __init__(self, types: KeyTypes) -> None:
        self.types = types

    def pack(self, columns: Sequence[pa.Array]) -> list[bytes]:
        """Return each row of the key columns as bytes."""
        plain = [_plain(column) for column in columns]
        return list(pack_values(plain[0] if len(plain) == 1 else map(list, zip(*plain, strict=True))))

    def columns(self, packed: Sequence[bytes]) -> list[pa.Array]:
        """Return the key columns of packed keys; the inverse of `pack`.

        Raises RecordError for a key that the type of its column can't hold.
        """
        keys = unpack_values(packed)
        several = len(self.types.types) > 1
        return [self._column([key[place] for key in keys] if several else keys, place) for place in range(len(self.types.types))]

    def _column(self, values: list[Any], place: int) -> pa.Array:
        try:
            return _column(values, _value_type(self.types.types[place]))
        except (pa.ArrowInvalid, OverflowError) as error:
            raise self.types.refusal(place, error) from error


def _plain(column: pa.Array) -> list[Any]:
    """Return a column's values as msgpack can pack them."""
    kind = _value_type(column.type)
    if column.type != kind:
        column = column.cast(kind)
    if pa.types.is_temporal(kind):
        return _counts(column)
    if pa.types.is_decimal(kind):
        return [None if value is None else _number(value) for value in column.to_pylist()]
    if pa.types.is_floating(kind):
        values = column_values(plain_floats(column))
        return [int(value) if value is not None and value.is_integer() and abs(value) < 2**63 else value for value in values]
    return column_values(column)


def _counts(column: pa.Array) -> list[Any]:
    """Return dates as days, and times as nanoseconds: integers, or their digits beyond 64 bits."""
    if pa.types.is_date(column.type):
        return column_values(column.cast(pa.date32()).view(pa.int32()))
    factor, counts = NANOSECONDS // PER_SECOND[column.type.unit], column_values(column.view(_integers(column.type)))
    if factor == 1:
        return counts
    return [None if count is None else _count(count * factor) for count in counts]


def _count(nanoseconds: int) -> int | str:
    return nanoseconds if -(2**63) <= nanoseconds < 2**63 else str(nanoseconds)


def _number(value: Decimal) -> int | str:
    """Return a whole number of 64 bits as an integer, any other as its digits."""
    return int(value) if abs(value) < 2**63 and value == value.to_integral_value() else canonical(value)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).view(pa.date32()).cast(kind)
    if pa.types.is_temporal(kind):
        factor = NANOSECONDS // PER_SECOND[kind.unit]
        return pa.array([None if value is None else int(value) // factor for value in values], _integers(kind)).view(kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else Decimal(value) for value in values], kind)
    return pa.array(values, kind)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _integers(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()
