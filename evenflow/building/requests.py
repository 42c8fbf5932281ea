"""Checks and parses the arguments of requests to a job."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from ..engine.errors import RequestError


def checked_text(value: Any, what: str) -> str:
    """Return the text. Raises RequestError, naming `what`, for anything else."""
    if not isinstance(value, str):
        raise RequestError(f"{what}={value!r:.200}: expected a text")
    return value


def checked_strategy(value: Any) -> str | None:
    """Return the name of a migration strategy, or None."""
    return None if value is None else checked_text(value, "strategy")


def checked_list(values: Any, what: str) -> tuple[Any, ...]:
    """Return the members of a list. Raises RequestError, naming `what`, for anything else."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise RequestError(f"{what}={values!r:.200}: expected a list")
    return tuple(values)


def checked_key(key: Any) -> Hashable:
    """Return a value that can be a key, a tuple for a key of several columns. Raises RequestError for anything else."""
    import pyarrow as pa

    from ..engine.keys.typed_key import key_array

    try:
        hash(key)
        for part in key if isinstance(key, tuple) else (key,):
            key_array(part)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise RequestError(f"key={key!r:.200}: this can't be a key: {error}") from error
    return key  # type: ignore[no-any-return]  # it was hashed


def parse_groups(text: Any) -> tuple[int, ...]:
    """Parse key groups: numbers and ranges, both ends included. Raises RequestError for anything else.

    >>> parse_groups("0-3,7")
    (0, 1, 2, 3, 7)
    """

    def numbers() -> Iterator[int]:
        for part in text.split(","):
            first, _, last = part.partition("-")
            yield from range(int(first), int(last or first) + 1)

    try:
        return tuple(numbers())
    except (ValueError, AttributeError) as error:
        raise RequestError(f"groups is {text!r:.50}: it must be like 0-99,120") from error


def parse_key(text: str) -> Any:
    """Parse a key: JSON for numbers and for keys of several columns, else the text itself.

    >>> parse_key("17"), parse_key("JFK"), parse_key('["JFK", 7]'), parse_key('"17"')
    (17, 'JFK', ('JFK', 7), '17')
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value
