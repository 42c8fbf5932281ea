"""A key as users write it, converted to the types of the key columns of a state.

>>> [column.type for column in typed_key(7, ("id",), [pa.int32()], "count")]
[DataType(int32)]
>>> typed_key(1 << 40, ("id",), [pa.int32()], "count") is None
True
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pyarrow as pa

from ..errors import RecordError
from ..types.python_values import REFUSALS
from ..types.widening import value_type
from .encoding import comparable, encode_keys
from .key_values import key_value_column

UNSIGNED = 1 << 63
"""The least whole number that needs an unsigned type."""


def key_array(value: Hashable) -> pa.Array:
    """Return one value of a key as an array of one row. Raises one of Arrow's errors, TypeError or OverflowError if it can't be a key.

    >>> key_array(1 << 63).type
    DataType(uint64)
    """
    return pa.array([value], pa.uint64() if type(value) is int and value >= UNSIGNED else None)


def typed_key(key: Hashable, names: Sequence[str], types: Sequence[pa.DataType], operator: str) -> list[pa.Array] | None:
    """Return `key` as key columns of one row; None if no key of these types equals it.

    Raises RecordError for a value that can't be compared with its key column, such as a number with texts.
    """
    columns = []
    for value, name, kind in zip(key if isinstance(key, tuple) else (key,), names, map(value_type, types), strict=True):
        given = key_array(value).type
        if not comparable(given, kind):
            raise RecordError(operator, f"its key column `{name}` is {kind}, and {value!r} is {given}: give a key of that type")
        try:
            columns.append(key_value_column([value], kind))
        except REFUSALS:
            return None
    return encode_keys(pa.RecordBatch.from_arrays(columns, names=list(names)), tuple(names), operator).columns
