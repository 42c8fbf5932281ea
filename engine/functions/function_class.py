"""Functions with set-up: a class in place of a function; each worker creates one object of it and calls that for every record.

The plan holds the class, or a `functools.partial` of it with the constructor's arguments. A worker creates the object when the
operator opens, and calls its method `close`, if it has one, when the operator closes.

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


def let_go(function: Any, called: Any, operator: str) -> None:
    """Call `close` of the object that `made` created, if there is one.

    An error in it becomes a warning: all records are processed.
    """
    close = getattr(called, "close", None)
    if class_of(function) is None or not callable(close):
        return
    try:
        close()
    except Exception as error:  # noqa: BLE001 -- a user's method may raise anything, and other operators must be closed too
        warn(f"operator `{operator}`: {function_name(function)}.close raised {shown(error)}", RuntimeWarning, stacklevel=2)
