"""Objects of a class with fields: dataclasses, NamedTuple, TypedDict, msgspec.Struct and Pydantic models, as plain dicts.

>>> from evenflow.engine.typed_states.state_annotations import value_type
>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, slots=True)
... class Item:
...     name: str
...     price: float = 1.0
>>> items = value_type(Item)
>>> items.plain(Item("tea", 2.5)), items.value({"name": "tea"})
({'name': 'tea', 'price': 2.5}, Item(name='tea', price=1.0))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import shown
from ..typed_rows.field_types import UnfitError
from .value_types import Part, ValueType

Making = Literal["constructor", "fields", "tuple", "dict", "model"]
"""The way in which an object is made again: a call of its class; its fields alone, if the user wrote the constructor; the others
are those of a NamedTuple, a TypedDict and a Pydantic model.
"""


@dataclass(frozen=True)
class StateField:
    """A field. `default` returns its default, None without one; `argument`: the constructor takes it; `may_miss`: a key that a
    TypedDict need not have.
    """

    name: str
    type: ValueType
    default: Callable[[], Any] | None = None
    argument: bool = True
    may_miss: bool = False


@dataclass(frozen=True)
class ObjectType(ValueType):
    """A class. `sets`: the fields are set after the constructor has run, because the user's code in it may change them."""

    cls: type
    fields: tuple[StateField, ...]
    making: Making
    sets: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]  # the class has it
        return self.cls.__qualname__.rpartition("<locals>.")[2]

    @property
    def text(self) -> str:
        return "object"

    def parts(self, path: str) -> Iterator[Part]:
        for field in self.fields:
            yield Part(f"{path}.{field.name}", field.type.text, default=field.default is not None or field.may_miss)
            yield from field.type.parts(f"{path}.{field.name}")

    def plain(self, value: Any, newest: int | None = None) -> Any:
        if self.making == "dict" and isinstance(value, dict):
            return self._plain_dict(value, newest)
        if type(value) is not self.cls:
            self.refuse(value)
        plain = {}
        for field in self.fields:
            try:
                plain[field.name] = field.type.plain(getattr(value, field.name), newest)
            except UnfitError as error:
                raise UnfitError(f"{self.name}.{field.name}: {error}") from error
            except AttributeError as error:
                raise UnfitError(f"{self.name}.{field.name} is not set") from error
        return plain

    def value(self, plain: Any) -> Any:
        if type(plain) is not dict:
            self.refuse(plain)
        given = {}
        for field in self.fields:
            if field.name in plain:
                try:
                    given[field.name] = field.type.value(plain[field.name])
                except UnfitError as error:
                    raise UnfitError(f"{self.name}.{field.name}: {error}") from error
            elif field.default is None and not field.may_miss:
                raise UnfitError(f"{self.name}.{field.name} has no default, and was saved without a value: give it a default")
        if self.making == "dict":
            return {name: given[name] for name in plain if name in given}  # in its order
        try:
            return self._made(given)
        except Exception as error:
            raise UnfitError(f"{self.name} can't be made from {given!r:.200}: {shown(error)}") from error

    def _plain_dict(self, value: dict[Any, Any], newest: int | None) -> dict[str, Any]:
        if type(value) is not dict:
            self.refuse(value)
        known = {field.name: field for field in self.fields}
        wrong = next((name for name in value if name not in known), None)
        missing = next((field.name for field in self.fields if field.name not in value and not field.may_miss), None)
        if wrong is not None or missing is not None:
            raise UnfitError(f"expected {self.name} with the keys {list(known)}, got {list(value)!r:.200}")
        plain = {}
        for name, part in value.items():
            try:
                plain[name] = known[name].type.plain(part, newest)
            except UnfitError as error:
                raise UnfitError(f"{self.name}[{name!r}]: {error}") from error
        return plain

    def _made(self, given: dict[str, Any]) -> Any:
        cls: Any = self.cls
        if self.making == "tuple":
            return cls._make(given[field.name] if field.name in given else self._default(field) for field in self.fields)
        if self.making == "model":
            made = cls.model_construct(**given)
            vars(made).update(given)
            return made
        if self.making == "fields":
            made = cls.__new__(cls)
            given = {field.name: given[field.name] if field.name in given else self._default(field) for field in self.fields}
        else:
            made = cls(**{field.name: given[field.name] for field in self.fields if field.argument and field.name in given})
        if self.making == "fields" or self.sets:
            for name, value in given.items():
                object.__setattr__(made, name, value)  # it may be frozen
        return made

    def _default(self, field: StateField) -> Any:
        assert field.default is not None
        return field.default()
