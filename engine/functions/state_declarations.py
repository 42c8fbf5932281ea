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
def value_state(default: Any = None, ttl: Duration | None = None, *, type: None = None, renamed_from: str | None = None) -> Any: ...
@overload
def value_state(*, ttl: Duration | None = None, type: type[T], renamed_from: str | None = None) -> T | None: ...
@overload
def value_state(default: T, ttl: Duration | None = None, *, type: type[T], renamed_from: str | None = None) -> T: ...
@overload
def value_state(default: Any = None, ttl: Duration | None = None, *, type: UnionType, renamed_from: str | None = None) -> Any: ...
def value_state(default: Any = None, ttl: Duration | None = None, *, type: Any = None, renamed_from: str | None = None) -> Any:  # noqa: A002 -- the word that users expect
    """Declare a value per key: `self.count += 1`, `del self.count`. `type`: its type, such as a dataclass or `list[Item]`.
    `renamed_from`: the name of the attribute in an earlier version of the code, from which a job continues.

    Without a type it takes plain values: numbers, texts, bytes, times, Decimal, UUID, numpy's scalars, and lists, tuples, dicts and sets
    of them.
    """
    return ValueState(default, ttl, type, renamed_from)


@overload
def list_state(ttl: Duration | None = None, *, type: None = None, renamed_from: str | None = None) -> Any: ...
@overload
def list_state(ttl: Duration | None = None, *, type: type[T], renamed_from: str | None = None) -> MutableSequence[T]: ...
@overload
def list_state(ttl: Duration | None = None, *, type: UnionType, renamed_from: str | None = None) -> Any: ...
def list_state(ttl: Duration | None = None, *, type: Any = None, renamed_from: str | None = None) -> Any:  # noqa: A002 -- the word that users expect
    """Declare a list per key: `self.last.append(x)`, `self.last.clear()`, `self.last = [...]`. `type`: that of its elements.

    `renamed_from` is as for `value_state`.
    """
    return ListState(ttl, type, renamed_from)


@overload
def map_state(ttl: Duration | None = None, *, keys: None = None, type: None = None, renamed_from: str | None = None) -> Any: ...
@overload
def map_state(
    ttl: Duration | None = None, *, keys: None = None, type: type[T], renamed_from: str | None = None
) -> MutableMapping[Any, T]: ...
@overload
def map_state(ttl: Duration | None = None, *, keys: type[K], type: type[T], renamed_from: str | None = None) -> MutableMapping[K, T]: ...
@overload
def map_state(ttl: Duration | None = None, *, keys: Any = None, type: Any = None, renamed_from: str | None = None) -> Any: ...
def map_state(ttl: Duration | None = None, *, keys: Any = None, type: Any = None, renamed_from: str | None = None) -> Any:  # noqa: A002 -- the word that users expect
    """Declare a dict per key: `self.seen[name] = x`, `name in self.seen`, `del self.seen[name]`.

    `type`: that of its values; `keys`: that of its keys. `renamed_from` is as for `value_state`.
    """
    return MapState(ttl, type, keys, renamed_from)
