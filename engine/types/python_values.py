"""Python values as columns. The invariant: a value becomes an equal one, or there is no column.

Arrow's own conversion cuts 2.5 to 2 in a column of integers, a datetime to its date and a struct to the declared fields,
and reads texts among bytes as bytes. So the Python types of the values decide first, a column at a time.

>>> array_of([1, 2.5]), array_of([{"a": 1}, {"b": "x"}]).to_pylist()
(<pyarrow.lib.DoubleArray object at ...>
[
  1,
  2.5
], [{'a': 1, 'b': None}, {'a': None, 'b': 'x'}])
>>> array_of([2.5], pa.int64())
Traceback (most recent call last):
    ...
evenflow.engine.types.python_times.MisfitError: values of the type float
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .python_times import MisfitError, datetimes, pandas_datetimes, pandas_durations, times_of_day
from .widening import decimal_type, is_bytes, is_list, is_text

REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError, AttributeError)
"""Errors that Arrow raises for values that it can't convert to a column. MisfitError is a ValueError."""

DIGITS = 20
"""The least number of digits before the point of a guessed decimal; with 18 behind it that makes 38, as in Spark."""


def array_of(values: Sequence[Any], kind: pa.DataType | None = None, *, declared: bool = False) -> pa.Array:
    """Return the values as a column of the type `kind`, or of the guessed type. Raises one of `REFUSALS`, most often MisfitError.

    `declared`: the user chose the type, so floats may be rounded to a float of fewer bits, whole floats may become integers, and
    integers may count the units of a time.
    """
    if len(values) and type(values[0]) is str and (texts := _texts_only(values, kind)) is not None:
        return texts
    families = {_FAMILY[each] for each in set(map(type, values))}
    missing = _NONE in families
    families.discard(_NONE)
    if kind is None:
        return _guessed(values, families, missing)
    if not families:
        return pa.nulls(len(values), kind)
    return _typed(values, families, missing, kind, declared)


def _texts_only(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array | None:
    """Return the column if all values are texts.

    Arrow guesses that faster than we look at the types; numbers that it guesses may be booleans.
    """
    try:
        column = pa.array(values)
    except REFUSALS:
        return None
    return column if column.type.equals(pa.string()) and (kind is None or kind.equals(column.type)) else None


class _Family(dict[type, str]):
    """A cache of the family of each type of values. An unknown type is a family of its own."""

    def __missing__(self, kind: type) -> str:
        family = next((family for base, family in _FAMILIES.items() if issubclass(kind, base)), f"{kind.__module__}.{kind.__qualname__}")
        if family in _FINER and hasattr(kind, _FINER[family]):
            family = f"{family} of pandas"
        self[kind] = family
        return family


_FAMILIES: dict[type, str] = {
    bool: "bool", np.bool_: "bool", int: "int", np.integer: "int", float: "float", np.floating: "float", str: "str", bytes: "bytes",
    bytearray: "bytes", memoryview: "bytes", Decimal: "decimal", datetime: "datetime", date: "date", time: "time", timedelta: "timedelta",
    np.timedelta64: "timedelta64", np.datetime64: "datetime64", dict: "dict", list: "list", tuple: "list", set: "list", frozenset: "list",
    np.ndarray: "ndarray", uuid.UUID: "uuid",
}  # fmt: skip
"""The first match counts: a bool is an int, and a datetime a date. numpy's timedelta64 is no integer here."""

_FINER = {"datetime": "nanosecond", "timedelta": "nanoseconds"}
"""The attribute that pandas' subclasses of Python's types add, by family."""

_NONE = "None"
_FAMILY = _Family({type(None): _NONE, np.timedelta64: "timedelta64"})


def _guessed(values: Sequence[Any], families: set[str], missing: bool) -> pa.Array:
    if not families:
        return pa.nulls(len(values))
    if families in ({"list"}, {"ndarray"}, {"list", "ndarray"}):
        return _lists(values, families, missing, None, declared=False)
    if families == {"dict"}:
        names = list(dict.fromkeys(chain.from_iterable(_there(values, missing))))
        if not all(isinstance(name, str) for name in names):
            raise MisfitError("dicts whose keys are not all strings")
        return _struct(values, missing, [(name, None) for name in names], declared=False)
    guess = _GUESSES.get(frozenset(families))
    if guess is not None:
        return guess(values)
    if len(families) > 1:
        raise MisfitError(f"values of the types {_listed(families)}")
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


_GUESSES: dict[frozenset[str], Callable[[Sequence[Any]], pa.Array]] = {
    frozenset({"int"}): _integers,
    frozenset({"float"}): lambda values: pa.array(values, pa.float64()),
    frozenset({"int", "float"}): lambda values: pa.array(values, pa.float64()),
    frozenset({"bool"}): lambda values: pa.array(values, pa.bool_()),
    frozenset({"str"}): lambda values: _texts(values, pa.string(), pa.large_string()),
    frozenset({"bytes"}): lambda values: _texts(values, pa.binary(), pa.large_binary()),
    frozenset({"decimal"}): _decimals,
    frozenset({"int", "decimal"}): lambda values: _decimals([Decimal(int(v)) if _FAMILY[type(v)] == "int" else v for v in values]),
    frozenset({"date"}): lambda values: pa.array(values, pa.date32()),
    frozenset({"datetime"}): datetimes,
    frozenset({"time"}): times_of_day,
    frozenset({"timedelta"}): lambda values: pa.array(values, pa.duration("us")),
    **dict.fromkeys((frozenset({"datetime of pandas"}), frozenset({"datetime", "datetime of pandas"})), pandas_datetimes),
    **dict.fromkeys((frozenset({"timedelta of pandas"}), frozenset({"timedelta", "timedelta of pandas"})), pandas_durations),
}
"""Functions that guess a column, by the families of its values."""


def _there(values: Sequence[Any], missing: bool) -> Sequence[Any]:
    """Return the values that are not None; `missing`: some are None."""
    return [value for value in values if value is not None] if missing else values


def _typed(values: Sequence[Any], families: set[str], missing: bool, kind: pa.DataType, declared: bool) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return array_of(values, kind.value_type, declared=declared).dictionary_encode().cast(kind)
    if pa.types.is_struct(kind):
        return _declared_struct(values, families, missing, kind, declared)
    if pa.types.is_map(kind):
        return _maps(values, families, missing, kind, declared)
    if is_list(kind):
        _expect(families, {"list", "ndarray"})
        return _lists(values, families, missing, kind, declared)
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
        raise MisfitError(f"values of the types {_listed(families)}")
    return pa.array(values, kind)


_ALLOWED: tuple[tuple[Callable[[pa.DataType], bool], set[str]], ...] = (
    (pa.types.is_boolean, {"bool"}),
    (is_text, {"str"}),
    (is_bytes, {"bytes"}),
    (pa.types.is_decimal, {"decimal", "int"}),
)
"""Kinds of types, and the families of values that each accepts."""


def _expect(families: set[str], allowed: set[str]) -> None:
    if not families <= allowed:
        raise MisfitError(f"values of the type{'s' if len(families) > 1 else ''} {_listed(families)}")


def _listed(families: set[str]) -> str:
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
    """Convert to dates, times, timestamps or durations; refuse values finer than the type's unit."""
    types = pa.types
    if declared and families == {"int"}:
        return pa.array(values, kind)
    if types.is_date(kind):
        _expect(families, {"date"})
        return pa.array(values, kind)
    if types.is_timestamp(kind):
        guess = _GUESSES.get(frozenset(families), pa.array) if families <= {"datetime", "datetime of pandas"} else pa.array
        _expect(families, {"datetime64"} if guess is pa.array else families)
        guessed = guess(values)
        if (guessed.type.tz is None) != (kind.tz is None):
            raise MisfitError("datetimes without a zone" if guessed.type.tz is None else "datetimes with a zone")
        return guessed.cast(pa.timestamp(guessed.type.unit, kind.tz)).cast(kind)
    if types.is_time(kind):
        _expect(families, {"time"})
        return times_of_day(values).cast(kind)
    if types.is_duration(kind):
        guess = _GUESSES.get(frozenset(families), pa.array) if families <= {"timedelta", "timedelta of pandas"} else pa.array
        _expect(families, {"timedelta64"} if guess is pa.array else families)
        return guess(values).cast(kind)
    return pa.array(values, kind)


def _struct(values: Sequence[Any], missing: bool, fields: Sequence[tuple[str, pa.DataType | None]], *, declared: bool) -> pa.Array:
    """Convert dicts to a struct column; a missing field is null."""
    if not fields:
        _columns(_there(values, missing), [])
        return pa.array(values, pa.struct([]))
    names = [name for name, _ in fields]
    columns = _columns(_there(values, missing), names)
    children = [array_of(column, kind, declared=declared) for column, (_, kind) in zip(columns, fields, strict=True)]
    if not missing:
        return pa.StructArray.from_arrays(children, names=names)
    there = np.fromiter((value is not None for value in values), np.bool_, len(values))
    where = pa.array(np.cumsum(there) - 1, mask=~there)
    return pa.StructArray.from_arrays([child.take(where) for child in children], names=names, mask=pa.array(~there))


def _columns(given: Sequence[dict[str, Any]], names: list[str]) -> list[list[Any]]:
    """Return the values of dicts by name. Raises MisfitError for a dict with another name."""
    try:
        if sum(map(len, given)) == len(given) * len(names):
            return [[value[name] for value in given] for name in names]
    except KeyError:
        pass
    unknown = set(chain.from_iterable(given)).difference(names)
    if unknown:
        raise MisfitError(f"a struct with the field {min(unknown, key=str)!r}, which its type lacks")
    return [[value.get(name) for value in given] for name in names]


def _declared_struct(values: Sequence[Any], families: set[str], missing: bool, kind: pa.DataType, declared: bool) -> pa.Array:
    fields = [(field.name, field.type) for field in kind]
    _expect(families, {"dict"})
    column = _struct(values, missing, fields, declared=declared)
    return column if column.type == kind else column.cast(kind)


def _lists(values: Sequence[Any], families: set[str], missing: bool, kind: pa.DataType | None, declared: bool) -> pa.Array:
    item = None if kind is None else kind.value_type
    flat = _vectors(values, item) if families == {"ndarray"} else None
    if flat is None and "ndarray" in families:
        values = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
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
    """Concatenate vectors of one numeric type; return None for other arrays."""
    first = values[0]
    if first is None or first.dtype.kind not in "iuf":
        return None
    if any(value is None or value.ndim != 1 or value.dtype != first.dtype for value in values):
        return None
    flat = pa.array(np.concatenate(values))
    return flat if kind is None or flat.type == kind else None


def _maps(values: Sequence[Any], families: set[str], missing: bool, kind: pa.DataType, declared: bool) -> pa.Array:
    """Convert dicts, or lists of pairs, to a map column."""
    _expect(families, {"dict", "list"})
    pairs = [() if value is None else list(value.items()) if isinstance(value, dict) else value for value in values]
    flat = list(chain.from_iterable(pairs))
    keys = array_of([key for key, _ in flat], kind.key_type, declared=declared)
    items = array_of([item for _, item in flat], kind.item_type, declared=declared)
    mask = pa.array([value is None for value in values]) if missing else None
    column = pa.MapArray.from_arrays(pa.array(_offsets(pairs), pa.int32()), keys, items, mask=mask)
    return column if column.type == kind else column.cast(kind)


def _offsets(values: Sequence[Any]) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return offsets
