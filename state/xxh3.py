"""XXH3 (64 bits, no seed) of short texts, for a whole column at once. The package `xxhash` computes the same hash one by one.

Texts of up to 16 bytes are hashed with three formulas by length, here over arrays; longer ones by the package. Follows Collet's
specification of the XXH family, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.

>>> hex(digests(pa.array(["JFK"]))[0]) == hex(xxh3_64_intdigest(b"JFK"))
True
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

Words: TypeAlias = npt.NDArray[np.uint64]
Lengths: TypeAlias = npt.NDArray[np.int64]

LONGEST = 16
"""The bytes of the longest text that is hashed here."""

_OF_NOTHING = np.uint64(xxh3_64_intdigest(b""))

_SECRET = np.frombuffer(
    bytes.fromhex("b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"),
    "<u8",
)
"""The first seven words of XXH3's default secret."""

_FLIP_3 = (_SECRET[0] ^ _SECRET[0] >> np.uint64(32)) & np.uint64(0xFFFFFFFF)
_FLIP_8 = _SECRET[1] ^ _SECRET[2]
_FLIP_LOW, _FLIP_HIGH = _SECRET[3] ^ _SECRET[4], _SECRET[5] ^ _SECRET[6]
_PRIME_2, _PRIME_3 = np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_PRIME_MX1, _PRIME_MX2 = np.uint64(0x165667919E3779F9), np.uint64(0x9FB21C651E98DF25)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(0xFF)
_OFFSETS = {pa.string().id: np.int32, pa.binary().id: np.int32, pa.large_string().id: np.int64, pa.large_binary().id: np.int64}


def are_short(column: pa.Array) -> bool:
    """Return True if all texts of the column have at most `LONGEST` bytes. False for types that `digests` doesn't take."""
    return column.type.id in _OFFSETS and int(np.diff(_ends(column)).max(initial=0)) <= LONGEST


def digests(column: pa.Array) -> Words:
    """Return the digest of each text, shape (rows,), of a column of strings or bytes, large or not; a null's is arbitrary."""
    ends = _ends(column)
    starts, lengths = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
    content = _Content(column, ends)
    starts -= ends[:1]
    hashes = np.full(len(column), _OF_NOTHING)
    for least, most, formula in ((1, 3, _to_3), (4, 8, _to_8), (9, LONGEST, _to_16)):
        there = np.flatnonzero((lengths >= least) & (lengths <= most))
        if len(there):
            hashes[there] = formula(content, starts[there], lengths[there])
    for place in np.flatnonzero(lengths > LONGEST).tolist():
        hashes[place] = xxh3_64_intdigest(content.bytes[starts[place] : starts[place] + lengths[place]].tobytes())
    return hashes


class _Content:
    """The bytes of all texts, one after the other, with room at the end to read a whole word anywhere."""

    def __init__(self, column: pa.Array, ends: npt.NDArray[np.integer]) -> None:
        first, last = (int(ends[0]), int(ends[-1])) if len(ends) else (0, 0)
        self.words = np.zeros((last - first) // 8 + 3, np.uint64)
        data = column.buffers()[2]
        if data is not None:
            self.words.view(np.uint8)[: last - first] = np.frombuffer(data, np.uint8)[first:last]
        self.bytes = self.words.view(np.uint8)

    def at(self, starts: Lengths) -> Words:
        """Return the eight bytes from each of these places on."""
        cells, shift = starts >> 3, ((starts & 7) << 3).astype(np.uint64)
        found: Words = self.words.take(cells) >> shift
        found |= self.words.take(cells + 1) << np.uint64(1) << (np.uint64(63) - shift)
        return found


def _ends(column: pa.Array) -> npt.NDArray[np.integer]:
    """Return the bounds of the texts in the column's bytes, shape (rows + 1,)."""
    return np.frombuffer(column.buffers()[1], _OFFSETS[column.type.id])[column.offset : column.offset + len(column) + 1]


def _to_3(content: _Content, starts: Lengths, lengths: Lengths) -> Words:
    size = lengths.astype(np.uint64)
    text = content.at(starts)
    middle = text >> (size >> np.uint64(1) << np.uint64(3)) & _BYTE
    last = text >> (size - np.uint64(1) << np.uint64(3)) & _BYTE
    combined = (text & _BYTE) << np.uint64(16) | middle << np.uint64(24) | last | size << np.uint64(8)
    return _avalanche_of_xxh64(combined ^ _FLIP_3)


def _to_8(content: _Content, starts: Lengths, lengths: Lengths) -> Words:
    size = lengths.astype(np.uint64)
    text = content.at(starts)
    ending = text >> (size - np.uint64(4) << np.uint64(3)) & _LOW
    hashes: Words = (ending + (text << _HALF)) ^ _FLIP_8
    hashes ^= _rotated(hashes, 49) ^ _rotated(hashes, 24)
    hashes *= _PRIME_MX2
    hashes ^= (hashes >> np.uint64(35)) + size
    hashes *= _PRIME_MX2
    hashes ^= hashes >> np.uint64(28)
    return hashes


def _to_16(content: _Content, starts: Lengths, lengths: Lengths) -> Words:
    low, high = content.at(starts) ^ _FLIP_LOW, content.at(starts + lengths - 8) ^ _FLIP_HIGH
    hashes: Words = low.byteswap()
    hashes += lengths.astype(np.uint64)
    hashes += high
    hashes += _folded_product(low, high)
    hashes ^= hashes >> np.uint64(37)
    hashes *= _PRIME_MX1
    hashes ^= hashes >> _HALF
    return hashes


def _folded_product(some: Words, others: Words) -> Words:
    """Combine the two halves of each product of 128 bits by exclusive or."""
    a, b, c, d = some >> _HALF, some & _LOW, others >> _HALF, others & _LOW
    low, crossed = b * d, a * d
    crossed += low >> _HALF
    other = b * c
    other += crossed & _LOW
    high = a * c
    high += crossed >> _HALF
    high += other >> _HALF
    high ^= other << _HALF
    high ^= low & _LOW
    return high


def _rotated(words: Words, bits: int) -> Words:
    rotated: Words = words << np.uint64(bits)
    rotated |= words >> np.uint64(64 - bits)
    return rotated


def _avalanche_of_xxh64(hashes: Words) -> Words:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _PRIME_2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _PRIME_3
    hashes ^= hashes >> _HALF
    return hashes
