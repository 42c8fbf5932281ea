r"""Lists of values as columns of bytes, one row per group, for state backends: no Python runs per value.

Every column of the values becomes up to three: the validity of each value (no bytes if all are valid), the length of each value
(strings and bytes), and the values themselves.

>>> lists = pa.array([["a", None], [], ["bcd"]], pa.large_list(pa.string()))
>>> columns = stored(lists)
>>> [column.to_pylist()[2] for column in columns]
[b'\x01', b'\x03\x00\x00\x00\x00\x00\x00\x00', b'bcd']
>>> from_stored(columns, lists.type).to_pylist()
[['a', None], [], ['bcd']]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.ragged import Ragged

Ints = npt.NDArray[np.int64]

_BYTES = pa.large_binary()


def stored_types(kind: pa.DataType) -> list[pa.DataType]:
    """Return the types of the stored columns of a part of type `kind`; only lists differ."""
    if not pa.types.is_large_list(kind):
        return [kind]
    return [_BYTES] * sum(map(_columns_of, _fields(kind.value_type)))


def stored(part: pa.Array) -> list[pa.Array]:
    """Return a part, in which no list is null, as columns of `stored_types`."""
    if not pa.types.is_large_list(part.type):
        return [part]
    lists = Ragged.from_arrow(part)
    return [column for values in _children(lists.values) for column in _stored(values, lists.offsets)]


def from_stored(columns: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """Return a part of type `kind` from its stored columns; the inverse of `stored`."""
    if not pa.types.is_large_list(kind):
        return columns[0]
    at, children = 0, []
    counts = np.zeros(0, np.int64)
    for field in _fields(kind.value_type):
        values, counts = _from_stored(columns[at : at + _columns_of(field)], field)
        children.append(values)
        at += _columns_of(field)
    struct = pa.types.is_struct(kind.value_type)
    values = pa.StructArray.from_arrays(children, fields=list(kind.value_type)) if struct else children[0]
    return Ragged.of(values, counts).to_arrow()


def _fields(kind: pa.DataType) -> list[pa.DataType]:
    return [field.type for field in kind] if pa.types.is_struct(kind) else [kind]


def _children(values: pa.Array) -> list[pa.Array]:
    return [values.field(i) for i in range(values.type.num_fields)] if pa.types.is_struct(values.type) else [values]


def _columns_of(kind: pa.DataType) -> int:
    return 1 if pa.types.is_null(kind) else 3 if _offset_type(kind) is not None else 2


def _offset_type(kind: pa.DataType) -> Any:
    """Return the type of the offsets of strings and bytes, None for values of one width."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return np.int32
    return np.int64 if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else None


def _stored(values: pa.Array, offsets: Ints) -> list[pa.LargeBinaryArray]:
    kind = values.type
    if pa.types.is_null(kind):
        return [_bytes(np.zeros(len(values), np.uint8), offsets)]
    if values.null_count:
        there = [_bytes(values.is_valid().to_numpy(zero_copy_only=False).view(np.uint8), offsets)]
    else:
        there = [_bytes(np.zeros(0, np.uint8), np.zeros_like(offsets))]
    if (offset_type := _offset_type(kind)) is not None:
        ends = _window(values.buffers()[1], offset_type, values.offset, len(values) + 1).astype(np.int64)
        data = values.buffers()[2]
        content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
        return [*there, _bytes(np.diff(ends), offsets), _bytes(content, (ends - ends[0])[offsets])]
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    size = values.type.bit_width // 8
    return [*there, _bytes(_window(values.buffers()[1], np.dtype(f"V{size}"), values.offset, len(values)), offsets)]


def _window(buffer: pa.Buffer | None, kind: Any, offset: int, length: int) -> npt.NDArray[Any]:
    if buffer is None or not buffer.size:
        return np.zeros(length, kind)
    return np.frombuffer(buffer, kind, count=offset + length)[offset:]


def _bytes(values: npt.NDArray[Any], offsets: Ints) -> pa.LargeBinaryArray:
    """Return the bytes of each stretch of `values`."""
    size = values.dtype.itemsize
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets * size)), pa.py_buffer(values.tobytes())]
    return pa.LargeBinaryArray.from_buffers(_BYTES, len(offsets) - 1, buffers)


def _from_stored(columns: Sequence[pa.LargeBinaryArray], kind: pa.DataType) -> tuple[pa.Array, Ints]:
    """Return the values end to end, and the number in each group."""
    validity, counts = _content(columns[0])
    if pa.types.is_null(kind):
        return pa.nulls(len(validity)), counts
    sizes, counts = _content(columns[1])
    storage = pa.uint8() if pa.types.is_boolean(kind) else kind
    if (offset_type := _offset_type(kind)) is not None:
        lengths, counts = sizes.view(np.int64), counts // 8
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(offset_type)
        buffers = [pa.py_buffer(ends), pa.py_buffer(_content(columns[2])[0])]
    else:
        counts = counts // (storage.bit_width // 8)
        buffers = [pa.py_buffer(sizes)]
    there = _there(validity, _content(columns[0])[1], counts)
    bits = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(storage, int(counts.sum()), [bits, *buffers]).cast(kind), counts


def _there(validity: npt.NDArray[np.uint8], sizes: Ints, counts: Ints) -> npt.NDArray[np.uint8] | None:
    """Return the validity of each value, None if all are valid; a group of valid values may have no bytes."""
    if not len(validity):
        return None
    there = np.ones(int(counts.sum()), np.uint8)
    there[np.repeat(sizes > 0, counts)] = validity
    return there


def _content(column: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return all bytes end to end, and the number of each row's."""
    ends = _window(column.buffers()[1], np.int64, column.offset, len(column) + 1)
    data = column.buffers()[2]
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    return content, np.diff(ends)
