"""Stable 64-bit hashes of key columns, and the key group that a hash falls into.

Invariant: equal keys have equal hashes in every process, on every machine and in every version, because groups, routing tables
and checkpoints outlive the process that made them. Python's own `hash` is salted per process and isn't used.

>>> hashes = hash64(pa.array([0, 1, 2]))
>>> hex(hashes[0])
'0xe220a8397b1dcdaf'
>>> group_of(hashes, 1024).tolist()
[431, 193, 718]
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_64_intdigest

from .xxh3 import are_short, digests

Hashes = npt.NDArray[np.uint64]
"""One hash per row."""

MAX_GROUPS = 32_768
"""The most key groups that an operator can have."""

NULL_HASH = np.uint64(0x6E756C6C6E756C6C)
"""The hash of a null of any type."""

FEW = 64
"""Up to this number of texts, a loop over all is faster than finding the distinct ones first."""

_LARGEST = np.iinfo(np.int64).max
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = np.uint64(0x94D049BB133111EB)
_BYTES = {
    pa.string().id: pa.binary(),
    pa.large_string().id: pa.large_binary(),
    pa.string_view().id: pa.binary_view(),
    pa.binary().id: None,
    pa.large_binary().id: None,
    pa.binary_view().id: None,
    pa.binary(1).id: None,
}
"""Types of text and bytes by id, with the type for reading text as bytes."""
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


class UnhashableKey(ValueError):
    """A key column has values without a hash. The message names the type, and the alternative."""


def hash64(column: pa.Array) -> Hashes:
    """Hash each value; shape (rows,).

    Integers of any width, booleans, dates, times, timestamps and durations in any unit, floats, decimals of any scale, strings
    and bytes can be keys; equal values have equal hashes within each of these kinds. A whole float or decimal has the integer's
    hash, because a column's type may widen. All NaNs are one value, and -0.0 is 0.0. Raises UnhashableKey for other types.
    """
    if pa.types.is_null(column.type):
        return np.full(len(column), NULL_HASH)
    if pa.types.is_dictionary(column.type):
        return _hash_distinct(column)
    if column.type.id in _BYTES:
        if len(column) <= FEW:
            return _digests(as_bytes(column))
        return _of_texts(column) if are_short(column) else _hash_distinct(column.dictionary_encode())
    if pa.types.is_decimal(column.type):
        return _hash_distinct(column.dictionary_encode())
    if column.null_count == 0:
        return mix(_words(column))
    hashes = mix(_words(column))
    hashes[pc.is_null(column).to_numpy(zero_copy_only=False)] = NULL_HASH
    return hashes


def combine(hashes: Sequence[Hashes]) -> Hashes:
    """Combine the hashes of several columns into one per row; their order matters. One column keeps its hashes."""
    combined = hashes[0]
    for column in hashes[1:]:
        combined = mix(combined * _MULTIPLY_1 + column)
    return combined


def group_of(hashes: Hashes, groups: int) -> npt.NDArray[np.uint16]:
    """Return the key group, `hash mod groups`, of each hash. Raises ValueError unless `groups` is a power of two up to 32,768."""
    if not (1 <= groups <= MAX_GROUPS and groups & (groups - 1) == 0):
        raise ValueError(f"{groups} key groups: use a power of two from 1 to {MAX_GROUPS}, for example 1024")
    return hashes.astype(np.uint16) & np.uint16(groups - 1)


def mix(words: Hashes) -> Hashes:
    """Return SplitMix64 of each word, in which every output bit depends on all bits.

    Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014.
    """
    mixed = words + _GAMMA
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MULTIPLY_1
    mixed ^= mixed >> np.uint64(27)
    mixed *= _MULTIPLY_2
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _words(column: pa.Array) -> Hashes:
    """Return the values of a column of fixed width as 64-bit words; a null's word is arbitrary."""
    kind = column.type
    if pa.types.is_floating(kind):
        return _float_words(column)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _integers(column)
    if pa.types.is_date(kind):
        return _integers(column.cast(pa.date32()).view(pa.int32()))
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        # Nanoseconds modulo 2**64: equal in every unit, and a timestamp in seconds that doesn't fit into nanoseconds has a hash too.
        return _integers(column.view(pa.int32() if kind.bit_width == 32 else pa.int64())) * np.uint64(_NANOSECONDS[kind.unit])
    raise UnhashableKey(
        f"a value of type {kind} can't be a key: use an integer, string, bytes, boolean, date, timestamp, decimal or float column, "
        "or several of them (the fields of a struct, for example)"
    )


def _integers(column: pa.Array) -> Hashes:
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0) if column.null_count else column
    values = filled.to_numpy(zero_copy_only=False)
    words: Hashes = values.view(np.uint64) if values.dtype.itemsize == 8 else values.astype(np.int64).view(np.uint64)
    return words


def _float_words(column: pa.Array) -> Hashes:
    filled = column.fill_null(0.0) if column.null_count else column
    values = filled.to_numpy(zero_copy_only=False).astype(np.float64)
    values += 0.0  # makes -0.0 the 0.0 that it equals
    values[np.isnan(values)] = np.nan
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    whole = (integers == values) & (integers < _LARGEST)
    words: Hashes = np.where(whole, integers, values.view(np.int64)).view(np.uint64)
    return words


def _hash_distinct(column: pa.DictionaryArray) -> Hashes:
    """Hash every distinct value once."""
    distinct = column.dictionary
    if pa.types.is_decimal(distinct.type):
        values = distinct.to_pylist()
        hashes = _digests([None if value is None else canonical(value).encode() for value in values])
        for place, value in enumerate(values):
            if value is not None and value == value.to_integral_value() and -_LARGEST <= value <= _LARGEST:
                hashes[place] = mix(np.array([int(value)], np.int64).view(np.uint64))[0]
    elif distinct.type.id in _BYTES and (len(distinct) <= FEW or not are_short(distinct)):
        hashes = _digests(as_bytes(distinct))
    else:
        hashes = hash64(distinct)
    with_null = np.append(hashes, NULL_HASH)
    indices = column.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(len(distinct))
    rows: Hashes = with_null[indices.to_numpy(zero_copy_only=False)]
    return rows


def _of_texts(column: pa.Array) -> Hashes:
    """Hash short texts."""
    hashes = digests(column)
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = NULL_HASH
    return hashes


def as_bytes(column: pa.Array) -> list[bytes | None]:
    """Return the values of a column of text or bytes; text isn't copied, as Arrow stores it in UTF-8."""
    as_bytes = _BYTES[column.type.id]
    values: list[bytes | None] = (column if as_bytes is None else column.view(as_bytes)).to_pylist()
    return values


def _digests(values: Sequence[bytes | None]) -> Hashes:
    return np.array([NULL_HASH if value is None else xxh3_64_intdigest(value) for value in values], dtype=np.uint64)


def canonical(value: Decimal) -> str:
    """Return the digits without trailing zeros, so that 1.50 and 1.5 (in columns of other scales) are one key."""
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
