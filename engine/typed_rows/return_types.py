"""The class of rows that a user's function returns, by its annotation.

>>> from typing import NamedTuple
>>> class Priced(NamedTuple):
...     price: float
>>> def priced(row) -> Priced: ...
>>> returned_class(priced).__name__, returned_class(lambda row: row)
('Priced', None)
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from .row_classes import is_row_class

_MANY = (Iterable, Iterator, Generator, Sequence, AsyncIterator, list, tuple, set, frozenset)


def returned_class(function: Any, *, many: bool = False) -> Any:
    """Return the row class that the function is annotated to return, None without one; `many`: it returns several rows."""
    while isinstance(function, partial):
        function = function.func
    if not inspect.isroutine(function):
        function = getattr(function if isinstance(function, type) else type(function), "__call__", None)  # noqa: B004 -- its annotations
    try:
        hint = typing.get_type_hints(function).get("return")
    except Exception:  # noqa: BLE001 -- annotations may hold anything, and another function's stay without meaning here
        return None
    if many:
        given = typing.get_args(hint)
        hint = given[0] if typing.get_origin(hint) in _MANY and given else None
    return hint if is_row_class(hint) else None
