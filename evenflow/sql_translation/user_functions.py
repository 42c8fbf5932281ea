"""Python functions that a statement calls by name.

>>> def count_char(text: str, char: str) -> int:
...     return text.count(char)
>>> checked_functions({"count_char": count_char})["COUNT_CHAR"].kind
DataType(int64)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

import pyarrow as pa
from sqlglot import exp

from ..engine.errors import FlowError
from ..engine.types.names import type_named
from .dialect import DIALECT, WINDOWS
from .functions import CALLED

_RESERVED = ("DESCRIPTOR", "PROCTIME", "WSTART", "WEND", "PARTITIONS")
"""Names that the dialect itself uses."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A Python function of values, called for each row, and the type of its results."""

    function: Callable[..., Any]
    kind: pa.DataType


def checked_functions(functions: Mapping[str, Any] | None) -> dict[str, UserFunction]:
    """Return the functions by their names in capitals. Raises FlowError for a wrong one, and for the name of a function of SQL."""
    if functions is not None and not isinstance(functions, Mapping):
        raise FlowError(f"sql(functions={functions!r:.100}): expected a dict from names to functions")
    found: dict[str, UserFunction] = {}
    for name, given in (functions or {}).items():
        place = f"sql(functions={{{name!r}: ...}})"
        function, kind = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if not isinstance(name, str) or not name.isidentifier() or not callable(function):
            raise FlowError(f"{place}: expected a name and a function, or (function, type), got {given!r:.100}")
        if not _is_free(name):
            raise FlowError(f"{place}: SQL has a function of this name; choose another")
        found[name.upper()] = UserFunction(function, _type_of(function, kind, place))
    return found


def _is_free(name: str) -> bool:
    (call,) = DIALECT.parse(f"{name}(a)")
    return isinstance(call, exp.Anonymous) and name.upper() not in (
        *CALLED,
        *WINDOWS,
        "DESCRIPTOR",
        "PROCTIME",
        "WSTART",
        "WEND",
        "PARTITIONS",
    )


def _type_of(function: Callable[..., Any], kind: Any, place: str) -> pa.DataType:
    if kind is None:
        try:
            kind = get_type_hints(function).get("return")
        except (TypeError, NameError):
            kind = None
    if kind is None:
        raise FlowError(f'{place}: annotate its result, as in def f(text: str) -> int, or give (function, "int64")')
    try:
        return type_named(kind)
    except ValueError as error:
        raise FlowError(f"{place}: {error}") from error
