"""Reads a user's class as a row type: dataclasses, NamedTuple, TypedDict, msgspec.Struct and Pydantic models.

The packages msgspec and pydantic are never imported: a class of theirs brings what is needed.

>>> from typing import NamedTuple
>>> class Point(NamedTuple):
...     x: int
...     y: float | None
>>> row_type(Point, "typed").known_columns().types
{'x': DataType(int64), 'y': DataType(double)}
"""

from __future__ import annotations

import dataclasses
import types
import typing
import uuid
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import pyarrow as pa

from ..errors import FlowError
from ..types.names import type_named
from ..types.widening import is_bytes, is_text
from .field_types import ChosenType, DictType, FieldType, LeafType, ListType, OpenType, Slot
from .row_classes import (
    CLASSES,
    DATACLASS,
    UnsupportedError,
    aliased_field,
    few_members,
    form_of,
    has_init_var,
    has_own_code,
    hints_of,
    is_row_class,
    shown_annotation,
)
from .row_type import Form, RowField, RowType

_SUPPORTED = (
    "int, float, str, bytes, bool, date, datetime, time, timedelta, Decimal, UUID, an Enum or Literal of texts or whole numbers, "
    "list[X], tuple[X, ...], set[X], frozenset[X], dict[K, X], X | None, another row class, or Annotated[int, 'int32'] for a type of Arrow"
)


def is_uuid(kind: pa.DataType) -> bool:
    """Return True for a type of columns of UUIDs."""
    return bool(kind == pa.uuid() or kind == pa.binary(16))


def is_text_or_view(kind: pa.DataType) -> bool:
    """Return True for a type of columns of texts."""
    return is_text(kind) or bool(kind == pa.string_view())


def is_bytes_or_view(kind: pa.DataType) -> bool:
    """Return True for a type of columns of bytes."""
    return is_bytes(kind) or bool(kind == pa.binary_view())


_LEAVES: dict[Any, FieldType] = {
    int: LeafType("int", pa.int64(), pa.types.is_integer),
    float: LeafType("float", pa.float64(), pa.types.is_floating),
    str: LeafType("str", pa.string(), is_text_or_view),
    bytes: LeafType("bytes", pa.binary(), is_bytes_or_view),
    bool: LeafType("bool", pa.bool_(), pa.types.is_boolean),
    date: LeafType("date", pa.date32(), pa.types.is_date),
    time: LeafType("time", pa.time64("us"), pa.types.is_time),
    timedelta: LeafType("timedelta", pa.duration("us"), pa.types.is_duration),
    uuid.UUID: LeafType("UUID", pa.uuid(), is_uuid),
    Decimal: OpenType("Decimal", None, pa.types.is_decimal, Decimal, pa.decimal128(38, 18)),
    datetime: OpenType("datetime", None, pa.types.is_timestamp, datetime, pa.timestamp("us")),
}

_LISTS = {list: list, set: set, frozenset: frozenset, tuple: tuple}


def row_type(cls: Any, method: str) -> RowType:
    """Return the class as a row type. Raises FlowError, naming `method` and the field, for any other class or annotation."""
    if not is_row_class(cls):
        shown = cls.__name__ if isinstance(cls, type) else f"{cls!r:.200}"
        raise FlowError(f"{method}({shown}): expected {CLASSES}")
    try:
        return _row_type(cls, ())
    except UnsupportedError as error:
        raise FlowError(f"{method}({cls.__name__}): {error}") from error


def _row_type(cls: Any, around: tuple[Any, ...]) -> RowType:
    if cls in around:
        raise UnsupportedError(f"{cls.__name__} contains itself, which no column can")
    form = form_of(cls)
    assert form is not None
    hints = hints_of(cls)
    needed = _fields(cls, form)
    if not needed:
        raise UnsupportedError(f"{cls.__name__} has no fields")
    fields = []
    for name, is_needed in needed.items():
        try:
            fields.append(RowField(name, _slot(hints.get(name, Any), (*around, cls)), is_needed))
        except UnsupportedError as error:
            raise UnsupportedError(f"{cls.__name__}.{name}: {error}") from error
    return RowType(cls, tuple(fields), form, changing=has_own_code(cls))


def _fields(cls: Any, form: Form) -> Mapping[str, bool]:
    """Return the fields in their order, True for those without a default."""
    if form == "dict":
        hints = typing.get_type_hints(cls, include_extras=True)
        optional = cls.__optional_keys__ | {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
        if optional:
            raise UnsupportedError(f"{cls.__name__} need not have the key `{min(optional)}`: a row has all its columns; say `| None`")
        return dict.fromkeys(hints, True)
    if form == "unvalidated":
        aliased = aliased_field(cls)
        if aliased is not None:
            raise UnsupportedError(f"{cls.__name__}.{aliased} has an alias: name the field as its column, or .rename(...) the column")
        return {name: field.is_required() for name, field in cls.model_fields.items()}
    if hasattr(cls, DATACLASS):
        if has_init_var(cls):
            raise UnsupportedError(f"{cls.__name__} has an InitVar, which no column can give")
        wrong = next((field.name for field in dataclasses.fields(cls) if not field.init), None)
        if wrong is not None:
            raise UnsupportedError(f"{cls.__name__}.{wrong} is no argument of the constructor: make it a property")
        return {field.name: True for field in dataclasses.fields(cls)}
    return dict.fromkeys(cls._fields if issubclass(cls, tuple) else cls.__struct_fields__, True)


def _slot(annotation: Any, around: tuple[Any, ...]) -> Slot:
    """Return the place for the values of an annotation."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        others = [each for each in get_args(annotation) if each is not type(None)]
        if len(others) != 1 or len(others) == len(get_args(annotation)):
            raise UnsupportedError(f"{shown_annotation(annotation)} has several types: a column has one")
        return Slot(_slot(others[0], around).kind, optional=True)
    if origin is Required:
        return _slot(get_args(annotation)[0], around)
    if origin is Annotated:
        slot = _slot(get_args(annotation)[0], around)
        kind = next((each for each in annotation.__metadata__ if isinstance(each, (str, pa.DataType))), None)
        return slot if kind is None else Slot(_chosen(slot.kind, kind), slot.optional)
    if origin is Literal:
        given = get_args(annotation)
        return Slot(_few(shown_annotation(annotation), {value: value for value in given if value is not None}), optional=None in given)
    return Slot(_field_type(annotation, origin, around), optional=False)


def _field_type(annotation: Any, origin: Any, around: tuple[Any, ...]) -> FieldType:
    try:
        if annotation in _LEAVES:
            return _LEAVES[annotation]
    except TypeError:  # it isn't hashable
        pass
    if isinstance(annotation, type) and issubclass(annotation, Enum) and not issubclass(annotation, Flag):
        return _few(annotation.__name__, {member.value: member for member in annotation})
    if is_row_class(annotation):
        return _row_type(annotation, around)
    given = get_args(annotation)
    if origin in _LISTS and len(given) == (2 if origin is tuple else 1) and (origin is not tuple or given[1] is ...):
        return ListType(shown_annotation(annotation), _LISTS[origin], _slot(given[0], around))
    if origin is dict and len(given) == 2:
        key = _slot(given[0], around)
        if key.optional or not isinstance(key.kind, (LeafType, ChosenType)):
            raise UnsupportedError(f"the keys of {shown_annotation(annotation)} must be of a plain type")
        return DictType(shown_annotation(annotation), key, _slot(given[1], around))
    raise UnsupportedError(f"{shown_annotation(annotation)} is no type of a column; use {_SUPPORTED}")


def _few(name: str, members: Mapping[Any, Any]) -> FieldType:
    """Return the type for an Enum or a Literal. Raises UnsupportedError unless all values are texts or all whole numbers."""
    return ChosenType(name, _LEAVES[few_members(name, members)], dict(members))


def _chosen(kind: FieldType, wanted: Any) -> FieldType:
    """Return the field type with the type of Arrow that the user chose."""
    try:
        arrow = type_named(wanted)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error
    if not isinstance(kind, LeafType) or not kind.accepts(arrow) or (pa.types.is_temporal(arrow) and getattr(arrow, "unit", "us") == "ns"):
        raise UnsupportedError(f"{kind.name} can't be in a column of the type {arrow}")
    return dataclasses.replace(kind, fixed=arrow, **({"inner": arrow} if isinstance(kind, OpenType) else {}))
