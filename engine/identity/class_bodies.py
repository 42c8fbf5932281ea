"""The parts of a user's class that decide what its objects do: its bases, and what its body defines.

>>> class Total:
...     start = 0
...     def add(self, n): return self.start + n
>>> sorted(name for name, _ in body_of(Total))
['add', 'start']
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import EnumMeta
from functools import cached_property
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, WrapperDescriptorType
from typing import Any

_DATA = frozenset({"__annotations__", "__slots__", "__match_args__", "__struct_defaults__", "__struct_fields__", "__pydantic_fields__"})
"""The attributes with names in underscores that count; others are made by Python or by a library from the rest of the body."""


def class_parts(cls: type) -> tuple[Any, ...]:
    """Return what a class defines, and the classes that it builds on."""
    return cls.__module__, cls.__qualname__, cls.__bases__, type(cls), tuple(sorted(body_of(cls), key=lambda item: item[0]))


def body_of(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield what a class's body defines, by name."""
    if isinstance(cls, EnumMeta):
        members: dict[str, Any] = dict(cls.__members__)
        yield "members", [(name, member.value) for name, member in members.items()]
    if dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        yield (
            "fields",
            [(each.name, each.type, _given(each.default), _given(each.default_factory), each.init, each.kw_only) for each in fields],
        )
    for name, value in vars(cls).items():
        if isinstance(value, GetSetDescriptorType | MemberDescriptorType | WrapperDescriptorType):
            continue
        if isinstance(cls, EnumMeta) and not isinstance(value, FunctionType | staticmethod | classmethod | property):
            continue
        special = name.startswith("_abc_") or (name.startswith("__") and name.endswith("__"))
        if not special or name in _DATA or isinstance(value, FunctionType | classmethod | staticmethod):
            yield name, _defined(value)


def _given(default: Any) -> Any:
    return "none" if default is dataclasses.MISSING else ("given", default)


def _defined(value: Any) -> Any:
    """Return the functions of a descriptor; any other value as it is."""
    if isinstance(value, classmethod | staticmethod):
        return type(value).__name__, value.__func__
    if isinstance(value, property):
        return "property", value.fget, value.fset, value.fdel
    return ("cached_property", value.func) if isinstance(value, cached_property) else value
