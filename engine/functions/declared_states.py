"""The states that a `KeyedFunction` declares as class attributes: a value, a list or a map per key, optionally with a time to
live. The values may have a declared type.

They are descriptors: inside `on_row` and `on_timer` the attribute is the state of the current key. A mutable value may be changed
in place, but only an assignment to the attribute counts as a write for its time to live.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from copy import deepcopy
from functools import cached_property
from typing import Any, ClassVar, Protocol

from ..errors import FlowError
from ..keyed_state.kinds.key_record import KeyRecord
from ..time.duration import Duration, microseconds
from ..typed_rows.field_types import UnfitError
from ..typed_states.state_annotations import value_type
from ..typed_states.value_types import NEWEST, AnyType, DictType, ListType, OptionalType, ValueType

_UNCHANGING = (type(None), bool, int, float, str, bytes)


class Bound(Protocol):
    """A function with states: `current` is the record of the current key, and the event time."""

    current: tuple[KeyRecord, int | None]


class KeyState(ABC):
    """A declared state. `ttl`: it expires this many microseconds of event time after its last write; None for never.

    `annotation`: the declared type of its value, or of the values in its list or map; None without one. `renamed_from`: the name under
    which it was saved before.
    """

    kind: ClassVar[str]
    """The name of this kind of state in a checkpoint's description."""

    def __init__(self, ttl: Duration | None, annotation: Any, renamed_from: str | None) -> None:
        self.ttl = None if ttl is None else microseconds(ttl, "ttl")
        if self.ttl == 0:
            raise FlowError("ttl must be longer than zero")
        self.name = ""
        self.annotation, self.renamed_from = annotation, renamed_from

    @cached_property
    def item(self) -> ValueType | None:
        """The declared type. Raises UnsupportedError if its values can't be saved."""
        return None if self.annotation is None else value_type(self.annotation)

    @property
    def stored(self) -> ValueType | None:
        """The type of all that is stored for a key; None without a declared type."""
        return self.item

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, function: Bound | None, owner: type) -> Any:
        return self if function is None else self.of(function)

    def __set__(self, function: Bound, value: Any) -> None:
        self.put(function, self.checked(value))

    def __delete__(self, function: Bound) -> None:
        self.forget(function)

    @abstractmethod
    def of(self, function: Bound) -> Any:
        """Return the attribute's value for the current key."""

    @abstractmethod
    def checked(self, value: Any) -> Any:
        """Return the form in which an assigned value is stored. Raises TypeError for a value of a wrong type."""

    def check(self, value: Any, kind: ValueType | None) -> None:
        """Raise TypeError if a value that is written is not of the type `kind`. Large containers are not checked whole."""
        if kind is not None:
            try:
                kind.plain(value, NEWEST)
            except UnfitError as error:
                raise TypeError(f"the state `{self.name}` is declared as {kind.name}: {error}") from error

    def get(self, function: Bound, otherwise: Any) -> Any:
        """Return the value for the current key, `otherwise` if there is none or it has expired."""
        record, now = function.current
        values = record.values
        if self.name not in values:
            return otherwise
        if self.ttl is not None and now is not None:
            written = record.written.get(self.name)
            if written is not None and written + self.ttl <= now:
                self.forget(function)
                return otherwise
        return values[self.name]

    def put(self, function: Bound, value: Any) -> None:
        """Store a value for the current key, as a write at the current event time."""
        record, now = function.current
        if self.ttl is not None:
            if now is None:
                raise ValueError(f"the state `{self.name}` has a ttl, which needs event time: give the source event_time=")
            record.written[self.name] = now
        record.values[self.name] = value

    def forget(self, function: Bound) -> None:
        """Forget the value for the current key, if there is one."""
        record, _ = function.current
        record.values.pop(self.name, None)
        record.written.pop(self.name, None)


class ValueState(KeyState):
    """A state of one value; `default` (a copy, if it is mutable) for a key without a value."""

    kind = "value"

    def __init__(self, default: Any = None, ttl: Duration | None = None, annotation: Any = None, renamed_from: str | None = None) -> None:
        super().__init__(ttl, annotation, renamed_from)
        self.default = default

    @cached_property
    def stored(self) -> ValueType | None:
        """The declared type, or None for a state whose default is None too."""
        return self.item if self.item is None or self.default is not None else OptionalType(self.item)

    def of(self, function: Bound) -> Any:
        value = self.get(function, self)
        if value is not self:
            return value
        return self.default if isinstance(self.default, _UNCHANGING) else deepcopy(self.default)

    def checked(self, value: Any) -> Any:
        self.check(value, self.stored)
        return value


class ListState(KeyState):
    """A state that is a list; empty for a key without one."""

    kind = "list"

    def __init__(self, ttl: Duration | None = None, annotation: Any = None, renamed_from: str | None = None) -> None:
        super().__init__(ttl, annotation, renamed_from)

    @cached_property
    def stored(self) -> ValueType | None:
        return None if self.item is None else ListType(f"list[{self.item.name}]", list, self.item)

    def of(self, function: Bound) -> Any:
        return _Items(self, function)

    def checked(self, value: Any) -> list[Any]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise TypeError(f"the state `{self.name}` is a list, got {value!r}")
        items = list(value)
        self.check(items, self.stored)
        return items


class MapState(KeyState):
    """A state that is a dict; empty for a key without one. `keys`: the declared type of its keys."""

    kind = "map"

    def __init__(self, ttl: Duration | None = None, annotation: Any = None, keys: Any = None, renamed_from: str | None = None) -> None:
        super().__init__(ttl, annotation, renamed_from)
        self.keys = keys

    @cached_property
    def item(self) -> ValueType | None:
        return None if self.annotation is None and self.keys is None else value_type(Any if self.annotation is None else self.annotation)

    @cached_property
    def key(self) -> ValueType:
        """The type of the keys."""
        return AnyType("a plain value", None) if self.keys is None else value_type(self.keys)

    @cached_property
    def stored(self) -> ValueType | None:
        return None if self.item is None else DictType(f"dict[{self.key.name}, {self.item.name}]", self.key, self.item)

    def of(self, function: Bound) -> Any:
        return _Entries(self, function)

    def checked(self, value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise TypeError(f"the state `{self.name}` is a map, got {value!r}")
        entries = dict(value)
        self.check(entries, self.stored)
        return entries


class _Items(MutableSequence[Any]):
    """The list of the current key."""

    def __init__(self, state: ListState, function: Bound) -> None:
        self._state, self._function = state, function

    def __getitem__(self, place: Any) -> Any:
        return self._state.get(self._function, [])[place]

    def __len__(self) -> int:
        return len(self._state.get(self._function, ()))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._state.get(self._function, ()))

    def __setitem__(self, place: Any, value: Any) -> None:
        if isinstance(place, slice):
            value = self._state.checked(value)
        else:
            self._state.check(value, self._state.item)
        items = self._state.get(self._function, [])
        items[place] = value
        self._put(items)

    def __delitem__(self, place: Any) -> None:
        items = self._state.get(self._function, [])
        del items[place]
        self._put(items)

    def insert(self, index: int, value: Any) -> None:
        self._state.check(value, self._state.item)
        items = self._state.get(self._function, [])
        items.insert(index, value)
        self._put(items)

    def clear(self) -> None:
        self._state.forget(self._function)

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, _Items) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def _put(self, items: list[Any]) -> None:
        if items:
            self._state.put(self._function, items)
        else:
            self._state.forget(self._function)


class _Entries(MutableMapping[Any, Any]):
    """The dict of the current key."""

    def __init__(self, state: MapState, function: Bound) -> None:
        self._state, self._function = state, function

    def __getitem__(self, name: Any) -> Any:
        return self._state.get(self._function, {})[name]

    def __contains__(self, name: object) -> bool:
        return name in self._state.get(self._function, ())

    def __len__(self) -> int:
        return len(self._state.get(self._function, ()))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._state.get(self._function, ()))

    def __setitem__(self, name: Any, value: Any) -> None:
        if self._state.item is not None:
            self._state.check(name, self._state.key)
            self._state.check(value, self._state.item)
        entries = self._state.get(self._function, {})
        entries[name] = value
        self._state.put(self._function, entries)

    def __delitem__(self, name: Any) -> None:
        entries = self._state.get(self._function, {})
        del entries[name]
        if entries:
            self._state.put(self._function, entries)
        else:
            self._state.forget(self._function)

    def clear(self) -> None:
        self._state.forget(self._function)

    def __repr__(self) -> str:
        return repr(dict(self))


def states_of(cls: type) -> dict[str, KeyState]:
    """Return the states that a class declares, by name."""
    return {name: state for base in reversed(cls.__mro__) for name, state in vars(base).items() if isinstance(state, KeyState)}
