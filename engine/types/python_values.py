"""Python values as columns. The invariant: a value becomes an equal one, or there is no column.

Arrow's own conversion cuts 2.5 to 2 in a column of integers, a datetime to its date and a struct to the declared fields, and reads texts
among bytes as bytes. So the Python types of the values decide first, a column at a time.

>>> array_of([1, 2.5]), array_of([{"a": 1}, {"b": "x"}]).to_pylist()
(<pyarrow.lib.DoubleArray object at ...>
[
  1,
  2.5
], [{'a': 1, 'b': None}, {'a': None, 'b': 'x'}])
>>> array_of([2.5], pa.int64())
Traceback (most recent call last):
    ...
evenflow.engine.types.python_values.MisfitError: values of the type float
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .widening import decimal_type, is_bytes, is_list, is_text

REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError, AttributeError)
"""What Arrow raises for values that don't become a column. MisfitError is a ValueError."""

DIGITS = 20
"""Digits before the point for which a guessed decimal has room, at least; with 18 behind it that makes 38, as in Spark."""

_PLAIN = frozenset({pa.int64().id, pa.float64().id, pa.string().id})
"""The types that Arrow guesses only for values that all are equal in them."""

_EASY = frozenset({int, float, str})


class MisfitError(ValueError):
    """The values have no column of the type, or none at all."""


def array_of(values: Sequence[Any], kind: pa.DataType | None = None, *, declared: bool = False) -> pa.Array:
    """The values as a column of the type `kind`, or of the type that is guessed. Raises one of `REFUSALS`, most often MisfitError.

    `declared`: the user chose the type, so floats may be rounded to a float of fewer bits, and whole floats may be integers. Integers may
    count the units of a time.
    """
    if len(values) and type(values[0]) in _EASY and (easy := _easy(values, kind)) is not None:
        return easy
    families = _families(values)
    if kind is None:
        return _guessed(values, families)
    if not families:
        return pa.nulls(len(values), kind)
    return _typed(values, families, kind, declared)


def _easy(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array | None:
    """The column, if Arrow guesses a type in which nothing is lost: it does so in a third of the time that a look at the types takes."""
    try:
        column = pa.array(values)
        if column.type.id not in _PLAIN:
            return None
        if kind is None or kind.equals(column.type):
            return column
        return column.cast(kind) if pa.types.is_integer(kind) and column.type.id == _INT64 else None
    except REFUSALS:
        return None


_INT64 = pa.int64().id


class _Family(dict[type, str]):
    """The family of each type of values, by the type. A type that isn't known is a family of its own."""

    def __missing__(self, kind: type) -> str:
        family = next((family for base, family in _FAMILIES.items() if issubclass(kind, base)), f"{kind.__module__}.{kind.__qualname__}")
        self[kind] = family
        return family


_FAMILIES: dict[type, str] = {
    bool: "bool", np.bool_: "bool", int: "int", np.integer: "int", float: "float", np.floating: "float", str: "str", bytes: "bytes",
    bytearray: "bytes", memoryview: "bytes", Decimal: "decimal", datetime: "datetime", date: "date", time: "time", timedelta: "timedelta",
    np.timedelta64: "timedelta64", np.datetime64: "datetime64", dict: "dict", list: "list", tuple: "list", set: "list", frozenset: "list",
    np.ndarray: "ndarray", uuid.UUID: "uuid",
}  # fmt: skip
"""In order: a bool is an int, and a datetime a date. numpy's timedelta64 is no integer here."""

_FAMILY = _Family({type(None): ""})
_FAMILY[np.timedelta64] = "timedelta64"


def _families(values: Sequence[Any]) -> set[str]:
    """The families of the values' types, without that of None."""
    return {_FAMILY[kind] for kind in set(map(type, values))} - {""}


def _guessed(values: Sequence[Any], families: set[str]) -> pa.Array:
    if not families:
        return pa.nulls(len(values))
    if families in ({"list"}, {"ndarray"}, {"list", "ndarray"}):
        return _lists(values, families, None, declared=False)
    if families == {"dict"}:
        names = list(dict.fromkeys(chain.from_iterable(value for value in values if value is not None)))
        if not all(isinstance(name, str) for name in names):
            raise MisfitError("dicts whose keys are not all strings")
        return _struct(values, [(name, None) for name in names], declared=False)
    guess = _GUESSES.get(frozenset(families))
    if guess is not None:
        return guess(values)
    if len(families) > 1:
        raise MisfitError(f"values of the types {_told(families)}")
    return pa.array(values)


def _integers(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.int64())
    except OverflowError:
        return pa.array(values, pa.uint64())


def _texts(values: Sequence[Any], kind: pa.DataType, large: pa.DataType) -> pa.Array:
    column = pa.array(values, kind)
    return pa.array(values, large) if isinstance(column, pa.ChunkedArray) else column


def _decimals(values: Sequence[Any]) -> pa.Array:
    column = pa.array(values)
    scale = max(0, column.type.scale)
    digits = column.type.precision - column.type.scale
    return column.cast(decimal_type(max(DIGITS, digits), scale) or column.type)


def _datetimes(values: Sequence[Any]) -> pa.Array:
    zones = _zones(values)
    if len({zone is None for zone in zones}) > 1:
        raise MisfitError("datetimes with and without a zone")
    if any(type(value) is not datetime and getattr(value, "nanosecond", 0) for value in values if value is not None):
        values = [None if value is None else value.to_datetime64() for value in values]  # pandas' Timestamp has nanoseconds
        return pa.array(values).cast(pa.timestamp("ns", None if zones == {None} else "UTC"))
    return pa.array(values, pa.timestamp("us", "UTC") if len(set(map(str, zones))) > 1 else None)


def _times(values: Sequence[Any]) -> pa.Array:
    if _zones(values) != {None}:
        raise MisfitError("times of the day with a zone")
    return pa.array(values, pa.time64("us"))


def _durations(values: Sequence[Any]) -> pa.Array:
    if any(type(value) is not timedelta and getattr(value, "nanoseconds", 0) for value in values if value is not None):
        return pa.array([None if value is None else value.to_timedelta64() for value in values])  # pandas' Timedelta has nanoseconds
    return pa.array(values, pa.duration("us"))


def _zones(values: Sequence[Any]) -> set[Any]:
    """The zones of datetimes or times."""
    return set(map(attrgetter("tzinfo"), filter(None, values))) or {None}


_GUESSES: dict[frozenset[str], Callable[[Sequence[Any]], pa.Array]] = {
    frozenset({"int"}): _integers,
    frozenset({"float"}): lambda values: pa.array(values, pa.float64()),
    frozenset({"int", "float"}): lambda values: pa.array(values, pa.float64()),
    frozenset({"bool"}): lambda values: pa.array(values, pa.bool_()),
    frozenset({"str"}): lambda values: _texts(values, pa.string(), pa.large_string()),
    frozenset({"bytes"}): lambda values: _texts(values, pa.binary(), pa.large_binary()),
    frozenset({"decimal"}): _decimals,
    frozenset({"int", "decimal"}): _decimals,
    frozenset({"date"}): lambda values: pa.array(values, pa.date32()),
    frozenset({"datetime"}): _datetimes,
    frozenset({"time"}): _times,
    frozenset({"timedelta"}): _durations,
}
"""By the families of the values: how their column is guessed."""


def _typed(values: Sequence[Any], families: set[str], kind: pa.DataType, declared: bool) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return array_of(values, kind.value_type, declared=declared).dictionary_encode().cast(kind)
    if pa.types.is_struct(kind):
        return _declared_struct(values, families, kind, declared)
    if pa.types.is_map(kind):
        return _maps(values, families, kind, declared)
    if is_list(kind):
        _expect(families, {"list", "ndarray"})
        return _lists(values, families, kind, declared)
    if pa.types.is_integer(kind):
        return _as_integers(values, families, kind, declared)
    if pa.types.is_floating(kind):
        return _as_floats(values, families, kind, declared)
    if pa.types.is_temporal(kind):
        return _as_times(values, families, kind, declared)
    expected = next((allowed for applies, allowed in _ALLOWED if applies(kind)), None)
    if expected is not None:
        _expect(families, expected)
    elif len(families) > 1:
        raise MisfitError(f"values of the types {_told(families)}")
    return pa.array(values, kind)


_ALLOWED: tuple[tuple[Callable[[pa.DataType], bool], set[str]], ...] = (
    (pa.types.is_boolean, {"bool"}),
    (is_text, {"str"}),
    (is_bytes, {"bytes"}),
    (pa.types.is_decimal, {"decimal", "int"}),
)
"""By kind of type: the families of its values."""


def _expect(families: set[str], allowed: set[str]) -> None:
    if not families <= allowed:
        raise MisfitError(f"values of the type{'s' if len(families) > 1 else ''} {_told(families)}")


def _told(families: set[str]) -> str:
    return " and ".join(sorted(families))


def _as_integers(values: Sequence[Any], families: set[str], kind: pa.DataType, declared: bool) -> pa.Array:
    if families == {"int"}:
        return pa.array(values, kind)
    _expect(families, {"int", "float", "decimal"} if declared else {"int"})
    return pa.array(values).cast(kind)


def _as_floats(values: Sequence[Any], families: set[str], kind: pa.DataType, declared: bool) -> pa.Array:
    _expect(families, {"int", "float"})
    column = pa.array(values, pa.float64())
    if kind == pa.float64():
        return column
    narrow = column.cast(kind)
    before, after = (each.cast(pa.float64()).to_numpy(zero_copy_only=False) for each in (column, narrow))
    same = (before == after) | np.isnan(before)
    if declared and "int" not in families:
        same |= np.isfinite(after)
    elif declared:
        rounded = np.fromiter((_FAMILY[type(value)] == "float" for value in values), np.bool_, len(values))
        same |= rounded & np.isfinite(after)
    if not same.all():
        raise MisfitError(f"a number that {kind} can't hold")
    return narrow


def _as_times(values: Sequence[Any], families: set[str], kind: pa.DataType, declared: bool) -> pa.Array:
    """Dates, times, timestamps and durations; what is finer than the type's unit is refused."""
    types = pa.types
    if declared and families == {"int"}:
        return pa.array(values, kind)
    if types.is_date(kind):
        _expect(families, {"date"})
        return pa.array(values, kind)
    if types.is_timestamp(kind):
        _expect(families, {"datetime"} if families == {"datetime"} else {"datetime64"})
        guessed = _datetimes(values) if families == {"datetime"} else pa.array(values)
        if (guessed.type.tz is None) != (kind.tz is None):
            raise MisfitError("datetimes without a zone" if guessed.type.tz is None else "datetimes with a zone")
        return guessed.cast(pa.timestamp(guessed.type.unit, kind.tz)).cast(kind)
    if types.is_time(kind):
        _expect(families, {"time"})
        return _times(values).cast(kind)
    if types.is_duration(kind):
        _expect(families, {"timedelta"} if families == {"timedelta"} else {"timedelta64"})
        return (_durations(values) if families == {"timedelta"} else pa.array(values)).cast(kind)
    return pa.array(values, kind)


def _struct(values: Sequence[Any], fields: Sequence[tuple[str, pa.DataType | None]], *, declared: bool) -> pa.Array:
    """Dicts as a struct; a field that is missing is null."""
    if not fields:
        return pa.array(values, pa.struct([]))
    missing = None in values
    given = [value for value in values if value is not None] if missing else values
    children = []
    for name, kind in fields:
        try:
            column = [value[name] for value in given]
        except KeyError:
            column = [value.get(name) for value in given]
        children.append(array_of(column, kind, declared=declared))
    names = [name for name, _ in fields]
    if not missing:
        return pa.StructArray.from_arrays(children, names=names)
    there = np.fromiter((value is not None for value in values), np.bool_, len(values))
    where = pa.array(np.cumsum(there) - 1, mask=~there)
    return pa.StructArray.from_arrays([child.take(where) for child in children], names=names, mask=pa.array(~there))


def _declared_struct(values: Sequence[Any], families: set[str], kind: pa.DataType, declared: bool) -> pa.Array:
    fields = [(field.name, field.type) for field in kind]
    if declared and families == {"list"}:  # tuples, by their places
        values = [None if value is None else _by_name(kind, value) for value in values]
    else:
        _expect(families, {"dict"})
    unknown = set(chain.from_iterable(value for value in values if value is not None)).difference(name for name, _ in fields)
    if unknown:
        raise MisfitError(f"a struct with the field {min(unknown, key=str)!r}, which {kind} lacks")
    column = _struct(values, fields, declared=declared)
    return column if column.type == kind else column.cast(kind)


def _by_name(kind: pa.DataType, value: Any) -> dict[str, Any]:
    names = [field.name for field in kind]
    if len(value) != len(names):
        raise MisfitError(f"{len(value)} values for {kind}")
    return dict(zip(names, value, strict=True))


def _lists(values: Sequence[Any], families: set[str], kind: pa.DataType | None, declared: bool) -> pa.Array:
    item = None if kind is None else kind.value_type
    flat = _vectors(values, item) if families == {"ndarray"} else None
    if flat is None and "ndarray" in families:
        values = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    missing = flat is None and None in values
    given = [() if value is None else value for value in values] if missing else values
    offsets = _offsets(given)
    if flat is None:
        flat = array_of(list(chain.from_iterable(given)), item, declared=declared)
    mask = pa.array([value is None for value in values]) if missing else None
    if kind is None or pa.types.is_list(kind):
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, mask=mask)
    else:
        lists = pa.LargeListArray.from_arrays(pa.array(offsets), flat, mask=mask)
    return lists if kind is None or lists.type == kind else lists.cast(kind)


def _vectors(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array | None:
    """The numbers of vectors of one type, one behind the other; None for other arrays."""
    first = values[0]
    if first is None or first.dtype.kind not in "iuf":
        return None
    if any(value is None or value.ndim != 1 or value.dtype != first.dtype for value in values):
        return None
    flat = pa.array(np.concatenate(values))
    return flat if kind is None or flat.type == kind else None


def _maps(values: Sequence[Any], families: set[str], kind: pa.DataType, declared: bool) -> pa.Array:
    """Dicts, or lists of pairs."""
    _expect(families, {"dict", "list"})
    pairs = [() if value is None else list(value.items()) if isinstance(value, dict) else value for value in values]
    flat = list(chain.from_iterable(pairs))
    keys = array_of([key for key, _ in flat], kind.key_type, declared=declared)
    items = array_of([item for _, item in flat], kind.item_type, declared=declared)
    mask = pa.array([value is None for value in values]) if None in values else None
    column = pa.MapArray.from_arrays(pa.array(_offsets(pairs), pa.int32()), keys, items, mask=mask)
    return column if column.type == kind else column.cast(kind)


def _offsets(values: Sequence[Any]) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return offsets
