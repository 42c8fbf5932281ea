"""A user's functions: checked when the graph is built, called on every row of a batch.

Results are checked a batch at a time, when they become columns: a check per row would cost as much as many functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..batch import Batch
from ..errors import FlowError
from ..operators.base import Emit
from .error_policy import ErrorPolicy, Refused, function_name


def check_function(function: Any, called: str, *arguments: str, yields: bool = False) -> Any:
    """The function, checked. `called` is the API method, for messages, and `arguments` are those of its calls; `yields`: it may be a
    generator.

    Raises FlowError for anything that is not a function, a class, an async function, a generator where a value is expected, or, as far as
    Python knows its signature, a wrong number of arguments.
    """
    call = f"({', '.join(arguments)})"
    if not callable(function):
        raise FlowError(f"{called}({function!r}): expected a function of {call}")
    name = function_name(function)
    if inspect.isclass(function) and function.__module__ != "builtins":
        raise FlowError(f"{called}({name}): a class, so each call would make an object: give a function of {call}, or an instance")
    plain = _called(function)
    if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
        raise FlowError(
            f"{called}({name}): an async function, which is not awaited: give a plain one; to wait for many things at once, "
            "call asyncio.run in map_batches"
        )
    if inspect.isgeneratorfunction(plain) and not yields:
        raise FlowError(f"{called}({name}): a generator function: return a value; flat_map takes what a function yields")
    _check_arguments(function, f"{called}({name})", arguments)
    return function


def _called(function: Any) -> Any:
    """The function or method that runs when `function` is called."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return getattr(type(function), "__call__", function)  # noqa: B004 -- the method of an instance that can be called is looked at


def _check_arguments(function: Any, place: str, arguments: tuple[str, ...]) -> None:
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (ValueError, TypeError):  # Python doesn't know those of all built-in functions
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise FlowError(f"{place}: it takes {signature}, but is called with ({', '.join(arguments)}): {error}") from error


def call_rows(function: Callable[[dict[str, Any]], Any], batch: Batch, errors: ErrorPolicy, emit: Emit) -> tuple[list[Any], Batch]:
    """The results of `function` for every row in order, and the batch of their rows; refused rows are left out of both."""
    results: list[Any] = []
    refused: list[int] = []
    append = results.append
    for piece in batch.pieces():
        rows = iter(piece.to_rows())
        while True:
            try:
                for row in rows:
                    append(function(row))
                break
            except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
                place = len(results) + len(refused)
                errors.take(Refused(place, error, function), batch, emit)
                refused.append(place)
    return results, batch.take(np.delete(np.arange(batch.num_rows), refused)) if refused else batch
