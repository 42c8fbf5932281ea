"""Reads an annotation as the type of a state's values.

>>> value_type(dict[str, tuple[int, float] | None]).plain({"a": (1, 2.5), "b": None})
{'a': (1, 2.5), 'b': None}
>>> value_type(complex)
Traceback (most recent call last):
    ...
evenflow.engine.typed_rows.row_classes.UnsupportedError: complex can't be saved
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Annotated, Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin
from uuid import UUID

import numpy as np
import pyarrow as pa

from ...state.packed_types import CONTAINERS, NUMPY, PLAIN, ZONED
from ..typed_rows.row_classes import (
    CLASSES,
    DATACLASS,
    UnsupportedError,
    aliased_field,
    few_members,
    form_of,
    has_generated_constructor,
    has_init_var,
    has_own_code,
    hints_of,
    shown_annotation,
)
from .array_types import ArrayType, ScalarType
from .object_type import Making, ObjectType, StateField
from .value_types import AnyType, ChosenType, DictType, LeafType, ListType, OptionalType, TupleType, ValueType

SUPPORTED = (
    f"{CLASSES}, int, float, str, bytes, bool, date, datetime, time, timedelta, Decimal, UUID, an Enum or Literal of texts or whole "
    "numbers, list[X], tuple[X, ...], tuple[X, Y], set[X], frozenset[X], dict[K, X], X | None, np.ndarray, npt.NDArray[np.float64], "
    "numpy's and Arrow's scalars (np.float64, pa.Scalar), or Any for plain values"
)
"""The annotations for error messages."""

_LEAVES = PLAIN | ZONED | NUMPY | {date, timedelta, Decimal, UUID}
_WRAPPERS = (Required, NotRequired, Final)
_LISTS: tuple[type, ...] = (list, set, frozenset)


def value_type(annotation: Any) -> ValueType:
    """Return the type of an annotation. Raises UnsupportedError, naming the field, for one whose values can't be saved."""
    return _type(annotation, ())


def _type(annotation: Any, around: tuple[Any, ...]) -> ValueType:
    origin, given = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _union(annotation, given, around)
    if origin is Annotated or origin in _WRAPPERS:
        return _type(given[0], around)
    if origin is Literal:
        members = {value: value for value in given if value is not None}
        chosen = ChosenType(shown_annotation(annotation), few_members(shown_annotation(annotation), members), members)
        return OptionalType(chosen) if None in given else chosen
    if origin in _LISTS and len(given) == 1:
        item = _type(given[0], around)
        return ListType(f"{origin.__name__}[{item.name}]", origin, item)
    if origin is tuple and len(given) == 2 and given[1] is ...:
        item = _type(given[0], around)
        return ListType(f"tuple[{item.name}, ...]", tuple, item)
    if origin is tuple:
        items = tuple(_type(each, around) for each in given)
        return TupleType(f"tuple[{', '.join(each.name for each in items)}]", items)
    if origin is dict and len(given) == 2:
        key, item = _type(given[0], around), _type(given[1], around)
        return DictType(f"dict[{key.name}, {item.name}]", key, item)
    if origin is np.ndarray:
        return ArrayType("ndarray", _element(given))
    return _class(annotation, around)


def _class(annotation: Any, around: tuple[Any, ...]) -> ValueType:
    if annotation is Any or annotation is object:
        return AnyType("a plain value", None)
    if annotation is None:
        return LeafType("None", frozenset((type(None),)))
    if isinstance(annotation, type):
        simple = _simple(annotation)
        if simple is not None:
            return simple
        if form_of(annotation) is not None:
            return _object(annotation, around)
    inner = getattr(annotation, "__supertype__", None) or getattr(annotation, "__value__", None)  # NewType, and `type X = ...`
    if inner is None:
        raise UnsupportedError(f"{shown_annotation(annotation)} can't be saved")
    return _type(inner, around)


def _simple(cls: type) -> ValueType | None:
    """Return the type of a class without fields; None for others."""
    if cls in _LEAVES:
        return LeafType(cls.__name__, frozenset((cls, int) if cls is float else (cls,)))
    if cls in CONTAINERS:
        return AnyType(cls.__name__, cls)
    if issubclass(cls, Enum) and not issubclass(cls, Flag):
        members = {member.value: member for member in cls}
        return ChosenType(cls.__name__, few_members(cls.__name__, members), members)
    if issubclass(cls, pa.Scalar):
        return ScalarType(f"pa.{cls.__name__}", cls)
    return ArrayType("ndarray", None) if cls is np.ndarray else None


def _union(annotation: Any, given: tuple[Any, ...], around: tuple[Any, ...]) -> ValueType:
    others = [_type(each, around) for each in given if each is not type(None)]
    leaves = [each for each in others if isinstance(each, LeafType)]
    if len(others) == 1:
        item = others[0]
    elif len(leaves) == len(others):
        item = LeafType(" | ".join(each.name for each in leaves), frozenset().union(*(each.kinds for each in leaves)))
    else:
        raise UnsupportedError(f"{shown_annotation(annotation)} has several types: use a class with an optional field for each")
    return OptionalType(item) if len(others) < len(given) else item


def _element(given: tuple[Any, ...]) -> type | None:
    """Return the class of the elements in `np.ndarray[shape, np.dtype[element]]`."""
    inner = get_args(given[1]) if len(given) == 2 else ()
    return inner[0] if inner and isinstance(inner[0], type) else None


def _object(cls: Any, around: tuple[Any, ...]) -> ObjectType:
    if cls in around:
        raise UnsupportedError(f"{cls.__name__} contains itself: keep objects in a list or dict, by number")
    hints = hints_of(cls)
    making, found = _fields(cls)
    fields = []
    for field in found:
        try:
            fields.append(dataclasses.replace(field, type=_type(hints.get(field.name, Any), (*around, cls))))
        except UnsupportedError as error:
            raise UnsupportedError(f"{cls.__name__}.{field.name}: {error}") from error
    if not fields:
        raise UnsupportedError(f"{cls.__name__} has no fields")
    return ObjectType(cls, tuple(fields), making, hasattr(cls, DATACLASS) and (has_own_code(cls) or not all(f.argument for f in fields)))


def _fields(cls: Any) -> tuple[Making, list[StateField]]:
    """Return how objects are made, and the fields, whose types are not known yet."""
    if form_of(cls) == "dict":
        optional = frozenset(name for name, hint in hints_of(cls).items() if get_origin(hint) is NotRequired) | cls.__optional_keys__
        return "dict", [StateField(name, _UNKNOWN, may_miss=name in optional) for name in hints_of(cls)]
    if form_of(cls) == "unvalidated":
        aliased = aliased_field(cls)
        if aliased is not None:
            raise UnsupportedError(f"{cls.__name__}.{aliased} has an alias: give the field that name")
        if cls.model_config.get("extra") == "allow":
            raise UnsupportedError(f"{cls.__name__} allows extra fields, which are not saved")
        fields = cls.model_fields.items()
        return "model", [StateField(name, _UNKNOWN, None if field.is_required() else field.get_default) for name, field in fields]
    if hasattr(cls, DATACLASS):
        if has_init_var(cls):
            raise UnsupportedError(f"{cls.__name__} has an InitVar, which is not saved: make it a field")
        making: Making = "constructor" if has_generated_constructor(cls) else "fields"
        return making, [StateField(field.name, _UNKNOWN, _default_of(field), field.init) for field in dataclasses.fields(cls)]
    if issubclass(cls, tuple):
        return "tuple", [StateField(name, _UNKNOWN, _constant(cls._field_defaults, name)) for name in cls._fields]
    if has_own_code(cls):
        raise UnsupportedError(f"{cls.__name__} has a __post_init__, which may change its fields: use a dataclass")
    return "constructor", list(_struct_fields(cls))


def _default_of(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    default = field.default
    return None if default is dataclasses.MISSING else lambda: default


def _constant(defaults: dict[str, Any], name: str) -> Callable[[], Any] | None:
    return (lambda: defaults[name]) if name in defaults else None


def _struct_fields(cls: Any) -> Iterator[StateField]:
    """Yield the fields of a msgspec.Struct: the last ones have defaults, or a mark that they have none."""
    names, defaults = cls.__struct_fields__, cls.__struct_defaults__
    given = {
        name: default
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True)
        if type(default).__name__ != "NoDefaultType"
    }
    return (StateField(name, _UNKNOWN, _constant(given, name)) for name in names)


_UNKNOWN: ValueType = AnyType("unknown", None)
