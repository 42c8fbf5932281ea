"""Calling a user's function on every row of a batch, and saying which row it failed on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..batch import Batch
from ..errors import EvenflowError, RecordError


def call_rows(operator: str, function: Callable[[dict[str, Any]], Any], batch: Batch) -> list[Any]:
    """`function` of every row, in order. Raises RecordError with the row for which it raised."""
    results: list[Any] = []
    append = results.append
    try:
        for row in batch.iterate_rows():
            append(function(row))
    except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
        refuse(operator, function, error, record=batch.slice(len(results), 1).to_rows()[0])
    return results


def refuse(operator: str, function: Callable[..., Any], error: Exception, *, key: Any = None, record: Any = None) -> NoReturn:
    """Raises the RecordError for a user function that raised `error` (our own errors pass through)."""
    if isinstance(error, EvenflowError):
        raise error
    name = getattr(function, "__qualname__", type(function).__name__)
    raise RecordError(operator, f"{name} raised {type(error).__name__}: {error}", key=key, record=record) from error
