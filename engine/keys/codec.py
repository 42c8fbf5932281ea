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
from ..errors import RecordError
from ..types.exact import Inexact, exactly
from .encoding import KeyTypes, plain_floats


class KeyCodec:
    """A codec between key columns and msgpack of the key's value, or of the list of its values if it has several columns.

    `types` must have learned the columns. A whole float or decimal is packed as the integer that it equals, because a column's
    type may widen.
    """

    def __init__(self, types: KeyTypes) -> None:
        self._types = types

    def pack(self, columns: Sequence[pa.Array]) -> list[bytes]:
        """Return each row of the key columns as bytes.

        Raises RecordError for a time that the type of the first keys can't hold.
        """
        try:
            plain = [_plain(column, kind) for column, kind in zip(columns, self._types.types, strict=True)]
        except Inexact as error:
            raise RecordError(self._types.operator, f"the key {error}, the type of the first keys: give the column one type") from error
        return list(pack_values(plain[0] if len(plain) == 1 else map(list, zip(*plain, strict=True))))

    def columns(self, packed: Sequence[bytes]) -> list[pa.Array]:
        """Return the key columns of packed keys; the inverse of `pack`."""
        keys, types = unpack_values(packed), self._types.types
        plain = [keys] if len(types) == 1 else [[key[i] for key in keys] for i in range(len(types))]
        try:
            return [_column(values, kind) for values, kind in zip(plain, types, strict=True)]
        except pa.ArrowInvalid as error:
            problem = f"a key column's type widened to one that can't hold all of its keys ({error}): give it one type"
            raise RecordError(self._types.operator, problem) from error


def _plain(column: pa.Array, kind: pa.DataType) -> list[Any]:
    """Return a column's values as msgpack can pack them."""
    kind = _value_type(kind)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_temporal(kind):
        return column_values(exactly(column, kind).view(_integers(kind)))
    if pa.types.is_decimal(column.type):
        return [None if value is None else _number(value) for value in column.to_pylist()]
    if pa.types.is_floating(column.type):
        values = column_values(plain_floats(column))
        return [int(value) if value is not None and value.is_integer() and abs(value) < 2**63 else value for value in values]
    return column_values(column)


def _number(value: Decimal) -> int | str:
    """Return a whole number of 64 bits as an integer, any other as its digits."""
    return int(value) if abs(value) < 2**63 and value == value.to_integral_value() else canonical(value)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    kind = _value_type(kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, _integers(kind)).view(kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else Decimal(value) for value in values], kind)
    return pa.array(values, kind)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _integers(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()
