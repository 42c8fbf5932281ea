"""Types of the values in states: values of a type become plain ones, which can be packed, and are restored from them.

Invariant: a value is restored equal and with the same type, or there is an error. Nothing is pickled.

>>> numbers = ListType("list[int]", list, LeafType("int", frozenset((int,))))
>>> numbers.plain([1, 2]), numbers.value([1, 2])
([1, 2], [1, 2])
>>> numbers.plain([1, "2"])
Traceback (most recent call last):
    ...
evenflow.engine.typed_rows.field_types.UnfitError: list[int]: expected int, got '2' (str)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

from ...state.packed_types import UNORDERED, ZONED, has_known_zone
from ...state.packing import first_foreign, problem_of
from ..typed_rows.field_types import UnfitError

NEWEST = 100
"""The number of parts of a container that are examined when a state is written; the next checkpoint or move examines all."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a type in the description of a state: its `path` within the state, and its type as `text`.

    `default`: it may be missing in a saved state, because the class has a default for it, or because it is new with its owner.
    """

    path: str
    text: str
    default: bool


class ValueType(ABC):
    """A type of values. `name`: the type as the user wrote it."""

    name: str

    @property
    def text(self) -> str:
        """The type in descriptions of states: without the names of classes, which may change."""
        return self.name

    @property
    def hashable(self) -> bool:
        """True if plain values can be members of a set, and keys of a dict."""
        return False

    def parts(self, path: str) -> Iterator[Part]:
        """Yield the parts inside, for the description of a state at `path`."""
        return iter(())

    @abstractmethod
    def plain(self, value: Any, newest: int | None = None) -> Any:
        """Return the value as a plain one. Raises UnfitError for a value of another type.

        `newest`: convert that many of the latest parts of each container, as a check that takes a limited time.
        """

    @abstractmethod
    def value(self, plain: Any) -> Any:
        """Return the value of a plain one. Raises UnfitError if it doesn't fit."""

    def plain_all(self, values: Iterable[Any], newest: int | None) -> list[Any]:
        """Return many values as plain ones."""
        plain = self.plain
        return [plain(value, newest) for value in values]

    def values(self, plain: Iterable[Any]) -> list[Any]:
        """Return the values of many plain ones."""
        return list(map(self.value, plain))

    def refuse(self, value: Any) -> NoReturn:
        """Raise UnfitError for a value of another type."""
        raise UnfitError(f"expected {self.name}, got {value!r:.200} ({type(value).__name__})")


@dataclass(frozen=True)
class LeafType(ValueType):
    """Values of the exact types `kinds`, which can be packed as they are."""

    name: str
    kinds: frozenset[type]

    @property
    def hashable(self) -> bool:
        return True

    def plain(self, value: Any, newest: int | None = None) -> Any:
        if type(value) not in self.kinds:
            self.refuse(value)
        if type(value) in ZONED and not has_known_zone(value):
            raise UnfitError(problem_of(value, "the value"))
        return value

    def value(self, plain: Any) -> Any:
        return self.plain(plain)

    def plain_all(self, values: Iterable[Any], newest: int | None) -> list[Any]:
        found = list(values)
        if self.kinds.isdisjoint(ZONED) and self.kinds.issuperset(map(type, found)):
            return found
        return super().plain_all(found, newest)

    def values(self, plain: Iterable[Any]) -> list[Any]:
        return self.plain_all(plain, None)


@dataclass(frozen=True)
class AnyType(ValueType):
    """Values that a state without a declared type takes too; `cls`: their class, None for any."""

    name: str
    cls: type | None

    @property
    def hashable(self) -> bool:
        return self.cls is None or self.cls in (tuple, frozenset)

    def plain(self, value: Any, newest: int | None = None) -> Any:
        if self.cls is not None and type(value) is not self.cls:
            self.refuse(value)
        if (first_foreign([value]) if newest is None else first_foreign([value], newest)) is not None:
            raise UnfitError(f"expected {self.name}: {problem_of(value, 'the value')}")
        return value

    def value(self, plain: Any) -> Any:
        return self.plain(plain)


@dataclass(frozen=True)
class ChosenType(ValueType):
    """The members of an Enum, or the values of a Literal. `members`: the values, by their plain values, which are of the type `of`."""

    name: str
    of: type
    members: Mapping[Any, Any]

    @property
    def text(self) -> str:
        return f"a choice of {self.of.__name__}"

    @property
    def hashable(self) -> bool:
        return True

    def plain(self, value: Any, newest: int | None = None) -> Any:
        plain = getattr(value, "value", value) if type(value) is not self.of else value
        if type(plain) is not self.of or plain not in self.members or type(self.members[plain]) is not type(value):
            self.refuse(value)
        return plain

    def value(self, plain: Any) -> Any:
        if type(plain) is not self.of or plain not in self.members:
            raise UnfitError(f"{plain!r:.200} is no value of {self.name}")
        return self.members[plain]


@dataclass(frozen=True)
class OptionalType(ValueType):
    """None, or a value of another type."""

    item: ValueType

    @property
    def name(self) -> str:  # type: ignore[override]  # it follows from the other type
        return f"{self.item.name} | None"

    @property
    def text(self) -> str:
        return f"{self.item.text} | None"

    @property
    def hashable(self) -> bool:
        return self.item.hashable

    def parts(self, path: str) -> Iterator[Part]:
        return self.item.parts(path)

    def plain(self, value: Any, newest: int | None = None) -> Any:
        return None if value is None else self.item.plain(value, newest)

    def value(self, plain: Any) -> Any:
        return None if plain is None else self.item.value(plain)


@dataclass(frozen=True)
class ListType(ValueType):
    """A list, tuple, set or frozenset, `cls`, of values of one type. A set of objects is a list of plain values."""

    name: str
    cls: type
    item: ValueType

    @property
    def text(self) -> str:
        return self.cls.__name__

    @property
    def hashable(self) -> bool:
        return self.cls in (tuple, frozenset) and self.item.hashable

    @property
    def _stored(self) -> type:
        return list if self.cls in UNORDERED and not self.item.hashable else self.cls

    def parts(self, path: str) -> Iterator[Part]:
        return of_items(path, "[]", self.item)

    def plain(self, value: Any, newest: int | None = None) -> Any:
        if type(value) is not self.cls:
            self.refuse(value)
        items: Any = value
        if newest is not None and len(items) > newest:
            items = islice(items, newest) if self.cls in UNORDERED else items[-newest:]
        try:
            items = self.item.plain_all(items, newest)
        except UnfitError as error:
            raise UnfitError(f"{self.name}: {error}") from error
        return items if self._stored is list else self._stored(items)

    def value(self, plain: Any) -> Any:
        if type(plain) is not self._stored:
            self.refuse(plain)
        parts: Any = plain
        items = self.item.values(parts)
        return items if self.cls is list else self.cls(items)


@dataclass(frozen=True)
class TupleType(ValueType):
    """A tuple with a type for each place."""

    name: str
    items: tuple[ValueType, ...]

    @property
    def text(self) -> str:
        return f"tuple of {len(self.items)}"

    @property
    def hashable(self) -> bool:
        return all(item.hashable for item in self.items)

    def parts(self, path: str) -> Iterator[Part]:
        for place, item in enumerate(self.items):
            yield from of_items(path, f"[{place}]", item)

    def plain(self, value: Any, newest: int | None = None) -> Any:
        if type(value) is not tuple or len(value) != len(self.items):
            self.refuse(value)
        try:
            return tuple([item.plain(part, newest) for item, part in zip(self.items, value, strict=True)])
        except UnfitError as error:
            raise UnfitError(f"{self.name}: {error}") from error

    def value(self, plain: Any) -> Any:
        if type(plain) is not tuple or len(plain) != len(self.items):
            self.refuse(plain)
        return tuple([item.value(part) for item, part in zip(self.items, plain, strict=True)])


@dataclass(frozen=True)
class DictType(ValueType):
    """A dict with keys and values of one type each. One whose keys are objects is a list of pairs of plain values."""

    name: str
    key: ValueType
    item: ValueType

    @property
    def text(self) -> str:
        return "dict"

    def parts(self, path: str) -> Iterator[Part]:
        yield from of_items(path, "{key}", self.key)
        yield from of_items(path, "[]", self.item)

    def plain(self, value: Any, newest: int | None = None) -> Any:
        if type(value) is not dict:
            self.refuse(value)
        if newest is not None and len(value) > newest:
            value = dict(islice(reversed(value.items()), newest))
        try:
            pairs = zip(self.key.plain_all(value, newest), self.item.plain_all(value.values(), newest), strict=True)
        except UnfitError as error:
            raise UnfitError(f"{self.name}: {error}") from error
        return dict(pairs) if self.key.hashable else list(pairs)

    def value(self, plain: Any) -> Any:
        if type(plain) is not (dict if self.key.hashable else list):
            self.refuse(plain)
        pairs = plain.items() if isinstance(plain, dict) else plain
        keys, items = zip(*pairs, strict=True) if plain else ((), ())
        return dict(zip(self.key.values(keys), self.item.values(items), strict=True))


def of_items(path: str, place: str, item: ValueType) -> Iterator[Part]:
    """Yield the description of what is inside of a container at `path`."""
    yield Part(f"{path}{place}", item.text, default=True)
    yield from item.parts(f"{path}{place}")
