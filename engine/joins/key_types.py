"""The types of the key columns of two inputs. Equal keys must have equal hashes, so types that are never equal are an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from ..errors import RecordError
from ..keys.encoding import comparable
from .sides import LEFT, RIGHT, Side


class KeyKinds:
    """The key types of both sides so far. `left_keys`, `right_keys`: the key columns, in pairs; `operator`: for errors."""

    def __init__(self, operator: str, left_keys: tuple[str, ...], right_keys: tuple[str, ...]) -> None:
        self._operator = operator
        self._names = tuple(zip(left_keys, right_keys, strict=True))
        self._kinds: dict[Side, list[pa.DataType]] = {}

    def learn(self, side: Side, kinds: Sequence[pa.DataType]) -> None:
        """Note the types of a side's key columns.

        Raises RecordError, naming both columns, if they can't equal the other side's.
        """
        if self._kinds.get(side) == kinds:
            return
        self._kinds[side] = list(kinds)
        if len(self._kinds) < 2:
            return
        problem = never_equal(self._names, self._kinds[LEFT], self._kinds[RIGHT])
        if problem is not None:
            raise RecordError(self._operator, problem)


def never_equal(names: Iterable[tuple[str, str]], left: Iterable[pa.DataType | None], right: Iterable[pa.DataType | None]) -> str | None:
    """Describe the first pair of key columns whose types are never equal; None if there is none. A type may be unknown (None).

    >>> never_equal([("k", "id")], [pa.int64()], [None])
    """
    for (mine, theirs), kind, other in zip(names, left, right, strict=True):
        if kind is None or other is None:
            continue
        problem = f"left's key column `{mine}` is {kind} and right's `{theirs}` is {other}"
        if not comparable(kind, other):
            return f"{problem}, which are never equal: convert one of them, for example with cast, map_batches or schema="
        if common_type(kind, other) is None:
            return f"{problem}, and no type holds both: convert one of them, for example with cast or schema="
    return None


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type for the keys of both sides, whose types can be equal; None if there is none.

    >>> common_type(pa.int32(), pa.int64()), common_type(pa.int64(), pa.uint64())
    (DataType(int64), None)
    >>> common_type(pa.timestamp("ns", "UTC"), pa.timestamp("us", "Europe/Berlin"))
    TimestampType(timestamp[ns, tz=UTC])
    """
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    one, other = _plain(one), _plain(other)
    if one == other:
        return one
    return next((widened(one, other) for fits, widened in _WIDENED if fits(one)), pa.large_binary())


def _integer(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    return None if pa.types.is_uint64(one) or pa.types.is_uint64(other) else pa.int64()


def _decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    scale = max(one.scale, other.scale)
    digits = max(one.precision - one.scale, other.precision - other.scale) + scale
    if digits > MOST_DIGITS_OF_ALL:
        return None
    large = digits > MOST_DIGITS or pa.types.is_decimal256(one) or pa.types.is_decimal256(other)
    return pa.decimal256(digits, scale) if large else pa.decimal128(digits, scale)


def _time(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    unit = _finer(one, other)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _finer(one: pa.DataType, other: pa.DataType) -> str:
    return max(str(one.unit), str(other.unit), key=("s", "ms", "us", "ns").index)


_WIDENED: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, pa.DataType], pa.DataType | None]], ...] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, lambda _one, _other: pa.float64()),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_timestamp, lambda one, other: pa.timestamp(_finer(one, other), one.tz)),
    (pa.types.is_duration, lambda one, other: pa.duration(_finer(one, other))),
    (pa.types.is_time, _time),
    (pa.types.is_date, lambda _one, _other: pa.date32()),
    (lambda kind: "string" in str(kind), lambda _one, _other: pa.large_string()),
)
"""Kinds of types: the test for each, and the function that returns the common type of two different types of that kind."""

MOST_DIGITS, MOST_DIGITS_OF_ALL = 38, 76
"""The most digits of a decimal128, and of a decimal256."""


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
