"""Functions with set-up: a class in place of a function; each worker creates one object of it and calls that for every record.

The plan holds the class, or a `functools.partial` of it with the constructor's arguments. A worker creates the object when the
operator opens, and calls its method `open(context)`, if it has one. It calls `close`, if there is one, when the operator closes.

>>> class Model:
...     def __init__(self, factor):
...         self.factor = factor
...     def __call__(self, row):
...         return row["n"] * self.factor
>>> from functools import partial
>>> made(partial(Model, 3), "predict")({"n": 2})
6
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any
from warnings import warn

from ..errors import RecordError, shown
from .error_policy import function_name
from .measures import FunctionContext


def class_of(function: Any) -> type | None:
    """Return the class whose objects are called in place of `function`; None if it is called itself."""
    while isinstance(function, partial):
        function = function.func
    if not inspect.isclass(function) or function.__module__ == "builtins" or not has_call(function):
        return None
    return function


def has_call(kind: type) -> bool:
    """Return True if the objects of a class can be called."""
    return any("__call__" in vars(base) for base in kind.__mro__)


def made(function: Any, operator: str) -> Any:
    """Return the callable for records: an object of the class that was passed, or the function itself.

    Raises RecordError, naming the operator, for a constructor that raises.
    """
    if class_of(function) is None:
        return function
    try:
        return function()
    except BaseException as error:
        raise RecordError(operator, f"the constructor of {function_name(function)} raised {shown(error)}") from error


def open_object(called: Any, context: FunctionContext) -> Any:
    """Call the object's method `open`, if it has one, and return what it returned: an awaitable if it is async.

    Raises RecordError, naming the operator, for one that raises.
    """
    method = getattr(called, "open", None)
    if not callable(method):
        return None
    try:
        return method(context)
    except BaseException as error:
        raise open_raised(called, context, error) from error


def open_raised(called: Any, context: FunctionContext, error: BaseException) -> RecordError:
    """Return the error for a method `open` that raised."""
    return RecordError(context.operator, f"{type(called).__name__}.open raised {shown(error)}")


def let_go(function: Any, called: Any, operator: str) -> None:
    """Call `close` of the object that `made` created, if there is one."""
    if class_of(function) is not None:
        close_object(called, operator)


def close_object(called: Any, operator: str) -> None:
    """Call the object's method `close`, if it has one. An error in it becomes a warning: all records are processed."""
    close = getattr(called, "close", None)
    if not callable(close):
        return
    try:
        close()
    except Exception as error:  # noqa: BLE001 -- a user's method may raise anything, and other operators must be closed too
        warn(f"operator `{operator}`: {type(called).__name__}.close raised {shown(error)}", RuntimeWarning, stacklevel=2)
