"""Keys as bytes, for state backends that don't keep Python objects, and back: equal keys have equal bytes.

>>> types = KeyTypes()
>>> columns = [pa.array(["JFK", None]), pa.array([1, 2])]
>>> types.learn(columns)
>>> codec = KeyCodec(types)
>>> [column.to_pylist() for column in codec.columns(codec.pack(columns))]
[['JFK', None], [1, 2]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...state.packing import pack_values, unpack_values
from ..batch import column_values
from .encoding import KeyTypes, plain_floats


class KeyCodec:
    """msgpack of the key's value, or of the list of its values if there are several columns; `types` must have learned them."""

    def __init__(self, types: KeyTypes) -> None:
        self._types = types

    def pack(self, columns: Sequence[pa.Array]) -> list[bytes]:
        """Each row of the key columns as bytes."""
        plain = [_plain(column, kind) for column, kind in zip(columns, self._types.types, strict=True)]
        return list(pack_values(plain[0] if len(plain) == 1 else map(list, zip(*plain, strict=True))))

    def columns(self, packed: Sequence[bytes]) -> list[pa.Array]:
        """The key columns of what `pack` gave."""
        keys, types = unpack_values(packed), self._types.types
        plain = [keys] if len(types) == 1 else [[key[i] for key in keys] for i in range(len(types))]
        return [_column(values, kind) for values, kind in zip(plain, types, strict=True)]


def _plain(column: pa.Array, kind: pa.DataType) -> list[Any]:
    """A column as values that msgpack knows."""
    kind = _value_type(kind)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_temporal(kind):
        return column_values(column.cast(kind).view(_integers(kind)))
    if pa.types.is_decimal(kind):
        return column_values(column.cast(kind).cast(pa.string()))
    return column_values(plain_floats(column) if pa.types.is_floating(column.type) else column)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    kind = _value_type(kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, _integers(kind)).view(kind)
    if pa.types.is_decimal(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _integers(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()
