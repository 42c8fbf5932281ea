"""Packs values of declared types as msgpack, and back. Values are checked against their types when read, and nothing is unpickled.

A dataclass or named tuple becomes the list of its fields' values. The names of the fields are stored once for a file (`Types.fields`), so
that another version of evenflow finds the fields that it knows: it ignores others, and uses the defaults of missing ones. Loads are
rounded to 32 bits: fractions of a second to 60 ns.

>>> from evenflow.balancer.plan import BalanceMove
>>> packing = Types().of(BalanceMove)
>>> packing.pack(BalanceMove(0, 1, key=("JFK", 7)))
[0, 1, None, ['JFK', 7]]
>>> packing.unpack([0, 1, None, ['JFK', 7]])
BalanceMove(source=0, target=1, group=None, key=('JFK', 7))
>>> packing.unpack([0, "one", None, "JFK"])
Traceback (most recent call last):
    ...
TypeError: 'one' is not int
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgpack
import numpy as np

from ..engine.errors import JobFailedError
from ..state.errors import EvenflowError

TEMPORAL = 1
"""The number of the msgpack extension for dates, times and decimals, which may be keys: their kind and their text."""

_TEXTS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "timedelta": (timedelta, lambda span: str(span // timedelta(microseconds=1)), lambda text: timedelta(microseconds=int(text))),
    "decimal": (Decimal, str, Decimal),
}
"""The types by name, each with its conversions to text and back. A datetime is a date, so it comes first."""

_WORD = range(-(2**63), 2**64)
_SMALL = 1 << 16


class Packing(NamedTuple):
    """A conversion of one type to types that msgpack knows, and back. `unpack` raises TypeError, ValueError or an EvenflowError."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """A field that both versions know: its place in the written list, and its conversion."""

    place: int
    unpack: Callable[[Any], Any]


class Types:
    """The conversions of all types in a file. `written`: the fields of each class in the file to read; None to write the fields of this
    version, which are then in `fields`.
    """

    def __init__(self, written: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.fields: dict[str, tuple[str, ...]] = {}
        self._written = written
        self._made: dict[Any, Packing] = {}

    def of(self, hint: Any) -> Packing:
        """Return the conversion of a declared type. Raises TypeError for one that can't be packed."""
        if hint not in self._made:
            self._made[hint] = self._make(hint)
        return self._made[hint]

    def _make(self, hint: Any) -> Packing:
        hint = getattr(hint, "__supertype__", hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if hint is Any or hint is Hashable:
            return Packing(_pack_key, _unpack_key)
        if origin in (Union, types.UnionType):
            return self._optional(hint, arguments)
        if origin is Literal:
            return Packing(lambda value: value, _one_of(arguments))
        if origin is tuple:
            return self._tuple(arguments)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._mapping(*map(self.of, arguments))
        if origin is np.ndarray:
            return _array(np.dtype(get_args(arguments[1])[0]))
        if isinstance(hint, type):
            return self._class(hint)
        raise TypeError(f"{hint} can't be packed")

    def _class(self, kind: type) -> Packing:
        if issubclass(kind, Enum):
            return Packing(lambda value: value.value, kind)
        if issubclass(kind, EvenflowError):
            return Packing(_pack_error, _unpack_error)
        if kind in (bool, int, float, str):
            return Packing(kind, _exactly(kind))
        if is_dataclass(kind):
            return self._fields(kind, tuple(field.name for field in fields(kind) if field.init))
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return self._fields(kind, kind._fields)
        raise TypeError(f"{kind} can't be packed")

    def _fields(self, kind: type, names: tuple[str, ...]) -> Packing:
        hints = get_type_hints(kind)
        packings = {name: self.of(hints[name]) for name in names}
        self.fields[kind.__name__] = names
        written = names if self._written is None else self._written.get(kind.__name__, ())
        known = {name: _Known(written.index(name), packings[name].unpack) for name in names if name in written}

        def pack(value: Any) -> list[Any]:
            return [packing.pack(getattr(value, name)) for name, packing in packings.items()]

        def unpack(values: Any) -> Any:
            if type(values) is not list or len(values) != len(written):
                raise TypeError(f"{values!r:.100} is not {kind.__name__}")
            return kind(**{name: one.unpack(values[one.place]) for name, one in known.items()})

        return Packing(pack, unpack)

    def _optional(self, hint: Any, arguments: tuple[Any, ...]) -> Packing:
        others = [argument for argument in arguments if argument is not type(None)]
        if len(others) != 1:
            raise TypeError(f"{hint} can't be packed")
        pack, unpack = self.of(others[0])
        return Packing(lambda value: None if value is None else pack(value), lambda value: None if value is None else unpack(value))

    def _tuple(self, arguments: tuple[Any, ...]) -> Packing:
        if arguments[1:] == (...,):
            pack, unpack = self.of(arguments[0])
            return Packing(
                lambda values: [pack(value) for value in values], lambda values: tuple(unpack(value) for value in _listed(values))
            )
        parts = [self.of(argument) for argument in arguments]

        def unpack_parts(values: Any) -> tuple[Any, ...]:
            return tuple(part.unpack(value) for part, value in zip(parts, _listed(values), strict=True))

        return Packing(lambda values: [part.pack(value) for part, value in zip(parts, values, strict=True)], unpack_parts)

    def _mapping(self, key: Packing, value: Packing) -> Packing:
        def unpack(values: Any) -> dict[Any, Any]:
            return {key.unpack(name): value.unpack(found) for name, found in mapped(values).items()}

        return Packing(lambda values: {key.pack(name): value.pack(found) for name, found in values.items()}, unpack)


def packed(value: Any) -> bytes:
    """Encode the result of `Packing.pack` as bytes."""
    made: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    return made


def unpacked(data: bytes) -> Any:
    """Decode the result of `packed`. Raises ValueError, TypeError or msgpack.UnpackException for other bytes."""
    return msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogatepass", ext_hook=_from_extension)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if type(value) is kind or (kind is float and type(value) is int):
            return value
        raise TypeError(f"{value!r:.100} is not {kind.__name__}")

    return checked


_listed = _exactly(list)

mapped = _exactly(dict)
"""Return a value that is a dict. Raises TypeError for any other."""


def _one_of(names: tuple[Any, ...]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if value not in names:
            raise ValueError(f"{value!r:.100} is not one of {names}")
        return value

    return checked


def _array(kind: np.dtype[Any]) -> Packing:
    """Pack an array: whole numbers in two bytes if they fit, others in four."""

    def pack(values: Any) -> list[Any]:
        small = kind.kind == "f" or (len(values) and not 0 <= int(values.min()) <= int(values.max()) < _SMALL)
        form = "<f4" if kind.kind == "f" else "<i4" if small else "<u2"
        return [form, values.astype(form).tobytes()]

    def unpack(value: Any) -> Any:
        form, data = _listed(value)
        if form not in ("<f4", "<i4", "<u2"):
            raise ValueError(f"{form!r:.100} is no form of an array")
        return np.frombuffer(_exactly(bytes)(data), form).astype(kind)

    return Packing(pack, unpack)


def _pack_key(value: Any) -> Any:
    """Pack a key, or a part of one. A key of an unknown type becomes its text."""
    if isinstance(value, tuple):
        return [_pack_key(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, float, str, bytes)) or (isinstance(value, int) and value in _WORD):
        return value
    for name, (kind, to_text, _) in _TEXTS.items():
        if isinstance(value, kind):
            return msgpack.ExtType(TEMPORAL, packed([name, to_text(value)]))
    return str(value)


def _unpack_key(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_unpack_key, value))
    if isinstance(value, dict):
        raise TypeError(f"{value!r:.100} is no key")
    return value


def _from_extension(code: int, data: bytes) -> Any:
    if code != TEMPORAL:
        raise ValueError(f"unknown extension {code}")
    name, text = unpacked(data)
    _, _, from_text = _TEXTS[_one_of(tuple(_TEXTS))(name)]
    with suppress(ArithmeticError):
        return from_text(_exactly(str)(text))
    raise ValueError(f"{text!r:.100} is no {name}")


def _pack_error(error: EvenflowError) -> list[Any]:
    return [str(error), [str(note) for note in getattr(error, "__notes__", ())]]


def _unpack_error(value: Any) -> EvenflowError:
    text, notes = _listed(value)
    error = JobFailedError(_exactly(str)(text))
    for note in _listed(notes):
        error.add_note(_exactly(str)(note))
    return error
