"""Keys as 64-bit words: hashed, compared and grouped for a whole batch at once; a few are grouped one by one.

>>> first, number = grouped(np.array([[7, 3, 7], [0, 1, 0]], np.uint64))
>>> first.tolist(), number.tolist()
([0, 1], [0, 1, 0])
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
"""The first word of each key, the second word of each, and so on: shape (words, n)."""

Where = npt.NDArray[np.int64]
"""Places or slots, shape (n,)."""

FEW = 128
"""Up to this number of keys, a loop over all takes less time than the calls of a vectorised step."""

_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


def mixed(words: Words) -> npt.NDArray[np.uint64]:
    """Hash each key, shape (n,); the highest bits are the best ones. The hash is valid within a process only."""
    hashes = words[0] * _ODD[0]
    for word in words[1:]:
        hashes = mixed_again(hashes)
        hashes += word
        hashes *= _ODD[0]
    return mixed_again(hashes)


def mixed_again(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hash the hashes again; equal ones stay equal."""
    again = hashes >> _HALF
    again ^= hashes
    again *= _ODD[1]
    return again


def equal(some: Words, others: Words) -> npt.NDArray[np.bool_]:
    """Return a mask of the places with equal keys, shape (n,)."""
    same: npt.NDArray[np.bool_] = some[0] == others[0]
    for mine, theirs in zip(some[1:], others[1:], strict=True):
        same &= mine == theirs
    return same


def grouped(words: Words) -> tuple[Where, Where]:
    """Return the place of the first of each distinct key, ascending; and for each key the number of its distinct one.

    The keys are put into a table of cells, which keeps the first of each cell. Those that differ from the key in their cell are
    put into the next table.
    """
    count = words.shape[1]
    if count <= FEW:
        return numbered(_values(words))
    shift = np.uint64(64 - max(1, (2 * count).bit_length()))
    table = np.empty(1 << int(64 - shift), np.int32)
    everyone = np.arange(count)
    leader, left, keys, hashes = everyone.copy(), everyone, words, mixed(words)
    while len(left) > FEW:
        cells = (hashes >> shift).astype(np.int64)
        table[cells[::-1]] = left[::-1]  # of several keys in a cell, the last one written stays
        leaders = table.take(cells).astype(np.int64)
        leader[left] = leaders
        other = np.flatnonzero(~equal(keys, words.take(leaders, axis=1)))
        left, keys, hashes = left[other], keys.take(other, axis=1), mixed_again(hashes[other])
    if len(left):
        first, number = numbered(_values(keys))
        leader[left] = left[first][number]
    first = np.flatnonzero(leader == everyone)
    number = np.empty(count, np.int64)
    number[first] = np.arange(len(first))
    return first, number.take(leader)


def _values(words: Words) -> list[Hashable]:
    """Return the keys as Python values."""
    return list(words[0].tolist() if len(words) == 1 else zip(*words.tolist(), strict=True))


def numbered(keys: Sequence[Hashable]) -> tuple[Where, Where]:
    """Group Python values as `grouped` does."""
    count, distinct = len(keys), dict.fromkeys(keys)
    if len(distinct) == count:
        return np.arange(count), np.arange(count)
    first = dict(zip(reversed(keys), range(count - 1, -1, -1), strict=True))  # the last one written stays
    number = dict(zip(distinct, range(count), strict=False))
    firsts = np.fromiter(map(first.__getitem__, distinct), np.int64, len(distinct))
    return firsts, np.fromiter(map(number.__getitem__, keys), np.int64, count)
