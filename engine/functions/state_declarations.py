"""The functions by which a `KeyedFunction` declares its states, with the types that type checkers see.

The attribute that is declared is a descriptor, and type checkers are told that it is what it gives: a value, a list or a dict.
"""

from __future__ import annotations

from collections.abc import MutableMapping, MutableSequence
from types import UnionType
from typing import Any, TypeVar, overload

from ..time.duration import Duration
from .declared_states import ListState, MapState, ValueState

T = TypeVar("T")
K = TypeVar("K")


@overload
def value_state(default: Any = None, ttl: Duration | None = None, *, type: None = None) -> Any: ...
@overload
def value_state(*, ttl: Duration | None = None, type: type[T]) -> T | None: ...
@overload
def value_state(default: T, ttl: Duration | None = None, *, type: type[T]) -> T: ...
@overload
def value_state(default: Any = None, ttl: Duration | None = None, *, type: UnionType) -> Any: ...
def value_state(default: Any = None, ttl: Duration | None = None, *, type: Any = None) -> Any:  # noqa: A002 -- the word that users expect
    """Declare a value per key: `self.count += 1`, `del self.count`. `type`: its type, such as a dataclass or `list[Item]`.

    Without a type it takes plain values: numbers, texts, bytes, times, Decimal, UUID, numpy's scalars, and lists, tuples, dicts and sets
    of them.
    """
    return ValueState(default, ttl, type)


@overload
def list_state(ttl: Duration | None = None, *, type: None = None) -> Any: ...
@overload
def list_state(ttl: Duration | None = None, *, type: type[T]) -> MutableSequence[T]: ...
@overload
def list_state(ttl: Duration | None = None, *, type: UnionType) -> Any: ...
def list_state(ttl: Duration | None = None, *, type: Any = None) -> Any:  # noqa: A002 -- the word that users expect
    """Declare a list per key: `self.last.append(x)`, `self.last.clear()`, `self.last = [...]`. `type`: that of its elements."""
    return ListState(ttl, type)


@overload
def map_state(ttl: Duration | None = None, *, keys: None = None, type: None = None) -> Any: ...
@overload
def map_state(ttl: Duration | None = None, *, keys: None = None, type: type[T]) -> MutableMapping[Any, T]: ...
@overload
def map_state(ttl: Duration | None = None, *, keys: type[K], type: type[T]) -> MutableMapping[K, T]: ...
@overload
def map_state(ttl: Duration | None = None, *, keys: Any = None, type: Any = None) -> Any: ...
def map_state(ttl: Duration | None = None, *, keys: Any = None, type: Any = None) -> Any:  # noqa: A002 -- the word that users expect
    """Declare a dict per key: `self.seen[name] = x`, `name in self.seen`, `del self.seen[name]`.

    `type`: that of its values; `keys`: that of its keys.
    """
    return MapState(ttl, type, keys)
