"""Classes whose objects have named fields: dataclasses, NamedTuple, TypedDict, msgspec.Struct and Pydantic models.

The packages msgspec and pydantic are never imported: a class of theirs brings what is needed.

>>> from typing import NamedTuple
>>> class Point(NamedTuple):
...     x: int
>>> form_of(Point), form_of(dict), has_own_code(Point)
('call', None, False)
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, get_origin

from .row_type import Form

CLASSES = "a dataclass, NamedTuple, TypedDict, msgspec.Struct or Pydantic model"

DATACLASS = "__dataclass_fields__"
_GENERATED = "<string>"
"""The file of a method that `dataclasses` wrote."""


class UnsupportedError(ValueError):
    """The error for an annotation that can't be used."""


def is_row_class(kind: Any) -> bool:
    """Return True for a class whose objects may be rows."""
    return form_of(kind) is not None


def form_of(cls: Any) -> Form | None:
    """Return the way in which objects of a class are made; None for other classes."""
    if not isinstance(cls, type):
        return None
    if typing.is_typeddict(cls) or (issubclass(cls, dict) and hasattr(cls, "__required_keys__")):
        return "dict"
    if hasattr(cls, "model_construct") and hasattr(cls, "model_fields"):
        return "unvalidated"
    if hasattr(cls, DATACLASS):
        return "keywords" if any(field.kw_only for field in dataclasses.fields(cls)) else "call"
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return "call"
    return "keywords" if hasattr(cls, "__struct_fields__") else None


def hints_of(cls: Any) -> dict[str, Any]:
    """Return the annotations of a class. Raises UnsupportedError if they name what can't be found."""
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        advice = "define the classes that it names in the module, not in a function"
        raise UnsupportedError(f"the annotations of {cls.__name__} can't be read ({error}): {advice}") from error


def has_init_var(cls: Any) -> bool:
    """Return True for a dataclass whose constructor takes a value that is no field."""
    fields = dataclasses.fields(cls)
    values = [each for each in getattr(cls, DATACLASS).values() if each not in fields]
    return any(isinstance(each.type, dataclasses.InitVar) or "InitVar" in str(each.type) for each in values)


def aliased_field(cls: Any) -> str | None:
    """Return the first field of a Pydantic model that has an alias; None without one."""
    fields = cls.model_fields.items()
    return next((name for name, field in fields if field.alias is not None or field.validation_alias is not None), None)


def has_generated_constructor(cls: Any) -> bool:
    """Return True unless the constructor of a dataclass is the user's."""
    code = getattr(cls.__init__, "__code__", None)
    return code is not None and code.co_filename == _GENERATED


def has_own_code(cls: Any) -> bool:
    """Return True if code of the user's runs when an object is made."""
    if hasattr(cls, "__post_init__") or getattr(cls, "__pydantic_post_init__", None) is not None:
        return True
    if hasattr(cls, DATACLASS):
        return not has_generated_constructor(cls)
    return issubclass(cls, tuple) and cls.__bases__ != (tuple,) and "__new__" in vars(cls)


def few_members(name: str, members: Mapping[Any, Any]) -> type:
    """Return the type of the values of an Enum or a Literal. Raises UnsupportedError unless all are texts or all whole numbers."""
    kinds = {type(value) for value in members}
    if len(kinds) != 1 or not kinds <= {str, int}:
        raise UnsupportedError(f"the values of {name} must be all texts, or all whole numbers")
    return kinds.pop()


def shown_annotation(annotation: Any) -> str:
    """Return an annotation as the user wrote it."""
    text = annotation.__name__ if isinstance(annotation, type) and get_origin(annotation) is None else str(annotation)
    return text.replace("typing.", "")
