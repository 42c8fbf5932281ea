"""The search for the operator of a plan that can't be pickled, the function of it, and the function's variable."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ray import cloudpickle

from ...engine.errors import FlowError
from ...engine.operators.rows.read import Read
from ...engine.operators.rows.write import Write
from ...engine.plan.physical import Plan

_dumps: Any = cloudpickle.dumps

_DEEPEST = 8
"""The depth to which functions and objects within each other are searched."""


def refusal(plan: Plan) -> FlowError | None:
    """Return the error for a plan that can't be pickled; None if every operator can be."""
    for stage in plan.stages:
        for chained in stage.chain:
            operator: Any = chained.operator
            configured = operator.source if isinstance(operator, Read) else operator.sink if isinstance(operator, Write) else operator
            if (problem := _problem(configured)) is not None:
                way, what = _culprit(configured, [], 0) or ([], configured)
                return FlowError(
                    f"operator `{chained.name}` can't be sent to workers: {_path(way)}{_kind(what)}, which can't be pickled ({problem}); "
                    "create it where it is used: inside the function, or in __call__ of an object that keeps it afterwards"
                )
    return None


def _problem(value: Any) -> str | None:
    """Return why the value can't be pickled; None if it can be."""
    try:
        _dumps(value)
    except Exception as error:  # noqa: BLE001 -- a user's __reduce__ may raise anything
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return None


def _culprit(value: Any, way: list[str], depth: int) -> tuple[list[str], Any] | None:
    """Return the innermost part of the value that can't be pickled, and the path to it; None if the value can be."""
    if _problem(value) is None:
        return None
    if depth < _DEEPEST:
        for name, part in _parts(value):
            if (found := _culprit(part, [*way, name], depth + 1)) is not None:
                return found
    return way, value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield everything that is pickled with the value, with its name in a message."""
    if inspect.ismethod(value):
        yield f"the object of the method `{value.__qualname__}`", value.__self__
    elif inspect.isfunction(value):
        yield from _variables(value)
    elif isinstance(value, partial):
        yield "the function of a partial", value.func
        yield from ((f"argument {place} of a partial", part) for place, part in enumerate(value.args))
        yield from ((f"argument `{name}` of a partial", part) for name, part in value.keywords.items())
    elif isinstance(value, Mapping):
        yield from ((f"the item {key!r:.50}", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"the item {place}", part) for place, part in enumerate(value))
    elif not inspect.isclass(value):
        yield from ((f"the attribute `{name}` of {type(value).__name__}", part) for name, part in getattr(value, "__dict__", {}).items())
        if type(value).__module__ == "__main__" or "<locals>" in type(value).__qualname__:
            yield from ((f"the method `{part.__qualname__}`", part) for part in vars(type(value)).values() if inspect.isfunction(part))


def _variables(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield a function's closure, defaults and the globals that it uses."""
    place, variables = f"of the function `{function.__qualname__}`", inspect.getclosurevars(function)
    yield from ((f"the variable `{name}` {place}", part) for name, part in variables.nonlocals.items())
    yield from ((f"the global `{name}` {place}", part) for name, part in variables.globals.items() if not inspect.ismodule(part))
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    yield from ((f"the default of `{p.name}` {place}", p.default) for p in parameters if p.default is not p.empty)


def _path(way: list[str]) -> str:
    """Return the path as text, without its first step: an attribute of the operator, whose name users don't know."""
    return f"{', in it '.join(way[1:])} is " if way[1:] else "it has "


def _kind(value: Any) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "").replace("_thread.", "threading.")
