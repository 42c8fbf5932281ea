"""The states that a `KeyedFunction` declares as class attributes: a value, a list or a map per key, optionally with a time to
live.

They are descriptors: inside `on_row` and `on_timer` the attribute is the state of the current key. A mutable value may be changed
in place, but only an assignment to the attribute counts as a write for its time to live.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from copy import deepcopy
from typing import Any, ClassVar, Protocol

from ..errors import FlowError
from ..keyed_state.kinds.key_record import KeyRecord
from ..time.duration import Duration, microseconds

_UNCHANGING = (type(None), bool, int, float, str, bytes)


class Bound(Protocol):
    """A function with states: `current` is the record of the current key, and the event time."""

    current: tuple[KeyRecord, int | None]


class KeyState(ABC):
    """A declared state. `ttl`: it expires this many microseconds of event time after its last write; None for never."""

    kind: ClassVar[str]
    """The name of this kind of state in a checkpoint's description."""

    def __init__(self, ttl: Duration | None) -> None:
        self.ttl = None if ttl is None else microseconds(ttl, "ttl")
        if self.ttl == 0:
            raise FlowError("ttl must be longer than zero")
        self.name = ""

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

    def __init__(self, default: Any = None, ttl: Duration | None = None) -> None:
        super().__init__(ttl)
        self.default = default

    def of(self, function: Bound) -> Any:
        value = self.get(function, self)
        if value is not self:
            return value
        return self.default if isinstance(self.default, _UNCHANGING) else deepcopy(self.default)

    def checked(self, value: Any) -> Any:
        return value


class ListState(KeyState):
    """A state that is a list; empty for a key without one."""

    kind = "list"

    def of(self, function: Bound) -> Any:
        return _Items(self, function)

    def checked(self, value: Any) -> list[Any]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise TypeError(f"the state `{self.name}` is a list, got {value!r}")
        return list(value)


class MapState(KeyState):
    """A state that is a dict; empty for a key without one."""

    kind = "map"

    def of(self, function: Bound) -> Any:
        return _Entries(self, function)

    def checked(self, value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise TypeError(f"the state `{self.name}` is a map, got {value!r}")
        return dict(value)


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
        items = self._state.get(self._function, [])
        items[place] = value
        self._put(items)

    def __delitem__(self, place: Any) -> None:
        items = self._state.get(self._function, [])
        del items[place]
        self._put(items)

    def insert(self, index: int, value: Any) -> None:
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


def value_state(default: Any = None, ttl: Duration | None = None) -> Any:
    """Declare a value per key: `self.count += 1`, `del self.count`."""
    return ValueState(default, ttl)


def list_state(ttl: Duration | None = None) -> Any:
    """Declare a list per key: `self.last.append(x)`, `self.last.clear()`, `self.last = [...]`."""
    return ListState(ttl)


def map_state(ttl: Duration | None = None) -> Any:
    """Declare a dict per key: `self.seen[name] = x`, `name in self.seen`, `del self.seen[name]`."""
    return MapState(ttl)
