"""Checks what a job's methods are given, before a request is made of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..engine.errors import RequestError


def checked_text(value: Any, what: str) -> str:
    """The text. Raises RequestError, naming `what`, for anything else."""
    if not isinstance(value, str):
        raise RequestError(f"{what}={value!r:.200}: expected a text")
    return value


def checked_strategy(value: Any) -> str | None:
    """The name of a migration strategy, or None."""
    return None if value is None else checked_text(value, "strategy")


def checked_list(values: Any, what: str) -> tuple[Any, ...]:
    """The members of a list. Raises RequestError, naming `what`, for what is no list."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise RequestError(f"{what}={values!r:.200}: expected a list")
    return tuple(values)


def checked_key(key: Any) -> Hashable:
    """A value that can be a key, a tuple for a key of several columns. Raises RequestError for anything else."""
    try:
        hash(key)
        for part in key if isinstance(key, tuple) else (key,):
            pa.array([part])
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise RequestError(f"key={key!r:.200}: this can't be a key: {error}") from error
    return key  # type: ignore[no-any-return]  # it was hashed
