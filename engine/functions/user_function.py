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
from ..context import Emit
from ..errors import FlowError
from ..typed_rows.objects import objects_of
from ..typed_rows.row_type import RowType
from .error_policy import ErrorPolicy, Refused, function_name
from .function_class import class_of


def check_function(function: Any, called: str, *arguments: str, yields: bool = False, classes: bool = False, awaited: bool = False) -> Any:
    """Return the function, checked. `called` is the API method, for messages, and `arguments` are those of its calls.

    `yields`: it may be a generator; `classes`: it may be a class that each worker instantiates; `awaited`: it must be an async
    function. Raises FlowError for anything that can't be called so, or not with these arguments, if Python knows its signature.
    """
    call, name = f"({', '.join(arguments)})", function_name(function)
    if not callable(function):
        raise FlowError(f"{called}({function!r}): expected {'an async' if awaited else 'a'} function of {call}")
    place = f"{called}({name})"
    made = class_of(function)
    if made is None and inspect.isclass(function) and function.__module__ != "builtins":
        advice = f"give it a method __call__(self, {call[1:]}, or" if classes else "so each call would make an object:"
        raise FlowError(f"{place}: a class whose objects can't be called: {advice} give a function of {call}, or an instance")
    if made is not None and not classes:
        raise FlowError(f"{place}: a class, so each call would make an object: give a function of {call}, or an instance")
    plain = _called(function) if made is None else made.__call__
    _check_kind(plain, place, yields=yields, awaited=awaited)
    if made is None:
        _check_arguments(function, place, arguments)
    else:
        _check_arguments(function, place, (), f"give its arguments with functools.partial({name}, ...)")
        _check_arguments(plain, f"{place}: __call__", ("self", *arguments))
        check_open(made, place, awaited=awaited)
    return function


def check_open(made: type, place: str, *, awaited: bool = False) -> None:
    """Raise FlowError for a method `open` that doesn't take the context, or is async where nothing awaits it."""
    method = getattr(made, "open", None)
    if not callable(method):
        return
    _check_arguments(method, f"{place}: open", ("self", "context"), "each worker calls it once; rename it if that isn't meant")
    if inspect.iscoroutinefunction(method) and not awaited:
        raise FlowError(f"{place}: open is an async method, which only map_async awaits: make it a plain one")


def _check_kind(plain: Any, place: str, *, yields: bool, awaited: bool) -> None:
    """Raise FlowError unless `plain` is an async function exactly if it must be, and no generator unless it may be."""
    if inspect.isasyncgenfunction(plain) or inspect.iscoroutinefunction(plain) != awaited:
        if awaited:
            raise FlowError(f"{place}: expected an async function, `async def`; map takes a plain one")
        raise FlowError(f"{place}: an async function, which is not awaited: give a plain one, or use map_async, which awaits many at once")
    if inspect.isgeneratorfunction(plain) and not yields:
        raise FlowError(f"{place}: a generator function: return a value; flat_map takes what a function yields")


def _called(function: Any) -> Any:
    """Return the function or method that runs when `function` is called."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return getattr(type(function), "__call__", function)  # noqa: B004 -- the instance's own method is examined


def _check_arguments(function: Any, place: str, arguments: tuple[str, ...], advice: str = "") -> None:
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (ValueError, TypeError):  # Python knows no signature for some built-in functions
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        behind = f"; {advice}" if advice else ""
        raise FlowError(f"{place}: it takes {signature}, but is called with ({', '.join(arguments)}): {error}{behind}") from error


def call_rows(
    function: Callable[[Any], Any], batch: Batch, errors: ErrorPolicy, emit: Emit, rows: RowType | None = None
) -> tuple[list[Any], Batch]:
    """Call `function` with every row in order, a dict or an object of the class `rows`.

    Return the results, and the batch without the refused rows.
    """
    results: list[Any] = []
    refused: list[int] = []
    append = results.append
    for piece in batch.pieces():
        given = iter(objects_of(piece, rows, errors.operator))
        while True:
            try:
                for row in given:
                    append(function(row))
                break
            except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
                place = len(results) + len(refused)
                errors.take(Refused(place, error, function), batch, emit)
                refused.append(place)
    return results, batch.take(np.delete(np.arange(batch.num_rows), refused)) if refused else batch
