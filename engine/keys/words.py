"""Key columns as 64-bit words and back: equal keys have equal words, and different keys different ones.

A column of fixed width is one word, and a second that is 1 for nulls once it had any. A text takes as many words as it needs:
its bytes, a byte of 1 behind them, and zeros. So a longer text later adds words that are zero for those before it. Types whose
equal values have different bits, and long texts, have no words.

>>> columns = [pa.array([7, None]), pa.array(["JFK", ""])]
>>> found = [words_of(column) for column in columns]
>>> [[word.tolist() for word in words] for words in found]
[[[7, 0], [0, 1]], [[21710410, 1]]]
>>> [column_of(words, column.type).to_pylist() for words, column in zip(found, columns)]
[[7, None], ['JFK', '']]
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.hashing import as_bytes
from ...state.words import FEW, Words

Word = npt.NDArray[np.uint64]
"""One word of each key, shape (n,)."""

LONGEST = 127
"""Bytes of the longest text that has words."""

_BYTES = 8
_END, _NULL = np.uint64(1), np.uint64(2)
_MASKS = np.array([0, *((1 << 8 * n) - 1 for n in range(_BYTES)), 2**64 - 1], np.uint64)
"""The mask of the bytes of a text in a word, by their number: index 0 for less than 0, then 0 to 8."""

_ENDS = np.array([0, *(1 << 8 * n for n in range(_BYTES)), 0], np.uint64)
"""The byte behind them, by the same index, if the text ends in this word."""


def have_words(kind: pa.DataType) -> bool:
    """Return True if values of this type have words, unless they are too long."""
    return kind.id in _OFFSETS or kind.id in _STORAGE


def words_of(column: pa.Array) -> list[Word] | None:
    """Return the words of a column of a type that has them; None if a text is too long."""
    kind = column.type.id
    if kind in _OFFSETS:
        return _of_few_texts(column) if len(column) <= FEW else _of_texts(column)
    storage = _STORAGE[kind]
    integers = column if kind == storage.id else column.cast(storage) if kind == _BOOL else column.view(storage)
    nulls = column.null_count
    values = (integers.fill_null(0) if nulls else integers).to_numpy()
    if kind in _FLOATS:
        floats = values.view(_FLOATS[kind]) + 0  # makes -0.0 the 0.0 that it equals
        floats[np.isnan(floats)] = np.nan
        values = floats.view(values.dtype)
    words = [values.astype(np.int64, copy=False).view(np.uint64)]
    if nulls:
        words.append(column.is_null().to_numpy(zero_copy_only=False).astype(np.uint64))
    return words


def column_of(words: Sequence[Word], kind: pa.DataType) -> pa.Array:
    """Convert words to a column; the inverse of `words_of`. Further words must be zero."""
    if kind.id in _OFFSETS:
        return _texts(words, kind)
    storage = _STORAGE[kind.id]
    nulls = words[1] != 0 if len(words) > 1 and words[1].any() else None
    column = pa.array(words[0].view(np.int64).astype(storage.to_pandas_dtype(), copy=False), storage, mask=nulls)
    return column.cast(kind) if kind.id == _BOOL else column.view(kind)


def joined(columns: Sequence[Sequence[Word]], widths: Sequence[int]) -> Words:
    """Concatenate the words of several columns, each padded with zero words to its width."""
    zeros = np.zeros(len(columns[0][0]), np.uint64)
    words = [word for of, width in zip(columns, widths, strict=True) for word in (*of, *repeat(zeros, width - len(of)))]
    return words[0][np.newaxis] if len(words) == 1 else np.stack(words)


_OFFSETS = {pa.string().id: np.int32, pa.binary().id: np.int32, pa.large_string().id: np.int64, pa.large_binary().id: np.int64}
"""The type of the offsets, by the id of a type of texts."""

_BOOL = pa.bool_().id
_FLOATS = {pa.float32().id: np.float32, pa.float64().id: np.float64}
_STORAGE = {
    _BOOL: pa.uint8(),
    **dict.fromkeys((pa.int8().id, pa.uint8().id), pa.int8()),
    **dict.fromkeys((pa.int16().id, pa.uint16().id), pa.int16()),
    **dict.fromkeys((pa.int32().id, pa.uint32().id, pa.float32().id, pa.date32().id, pa.time32("s").id), pa.int32()),
    **dict.fromkeys((pa.int64().id, pa.uint64().id, pa.float64().id), pa.int64()),
    **dict.fromkeys((pa.time64("us").id, pa.timestamp("us").id, pa.duration("us").id), pa.int64()),
}
"""The integer type with the same bits, by the id of a type."""


def _of_few_texts(column: pa.Array) -> list[Word] | None:
    """Return the words of a few texts, one text at a time; otherwise as `_of_texts`."""
    ended = [b"\2" if text is None else text + b"\1" for text in as_bytes(column)]
    longest = max(map(len, ended), default=1)
    if longest > LONGEST + 1:
        return None
    count = (longest - 1) // _BYTES + 1
    rows = b"".join(text.ljust(_BYTES * count, b"\0") for text in ended)
    return list(np.frombuffer(rows, np.uint64).reshape(-1, count).T)


def _of_texts(column: pa.Array) -> list[Word] | None:
    ends = np.frombuffer(column.buffers()[1], _OFFSETS[column.type.id])[column.offset : column.offset + len(column) + 1]
    starts, lengths = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if nulls is not None:
        lengths[nulls] = 0
    longest = int(lengths.max(initial=0))
    if longest > LONGEST:
        return None
    count = longest // _BYTES + 1
    content = _content(column.buffers()[2], ends, count)
    words = []
    starts -= ends[0] if len(ends) else 0
    cells, shift = starts >> 3, ((starts & 7) << 3).astype(np.uint64)
    for place in range(count):
        there = np.clip(lengths - (_BYTES * place - 1), 0, _BYTES + 1)
        word = content.take(cells + place) >> shift
        word |= content.take(cells + (place + 1)) << np.uint64(1) << (np.uint64(63) - shift)
        word &= _MASKS.take(there)
        word |= _ENDS.take(there)
        words.append(word)
    if nulls is not None:
        words[0][nulls] = _NULL
    return words


def _content(data: pa.Buffer | None, ends: npt.NDArray[np.integer], more: int) -> Word:
    """Return the bytes of the texts as words, followed by `more` words."""
    first, last = (int(ends[0]), int(ends[-1])) if len(ends) else (0, 0)
    content = np.zeros((last - first) // _BYTES + 2 + more, np.uint64)
    if data is not None:
        content.view(np.uint8)[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    return content


def _texts(words: Sequence[Word], kind: pa.DataType) -> pa.Array:
    rows = np.stack(words, axis=1).view(np.uint8)
    size = rows.shape[1]
    lengths = size - 1 - np.argmax(rows[:, ::-1] != 0, axis=1)
    nulls = rows[np.arange(len(rows)), lengths] == _NULL if len(rows) else np.zeros(0, np.bool_)
    content = rows[np.arange(size) < lengths[:, np.newaxis]]
    ends = np.zeros(len(rows) + 1, _OFFSETS[kind.id])
    np.cumsum(lengths, out=ends[1:])
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    return pa.Array.from_buffers(kind, len(rows), [valid, pa.py_buffer(ends), pa.py_buffer(content)])
