"""Makes `aggregate`, without windows and within them, and checks the aggregates that it gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.aggregates.base import AggregateFunction
from ..engine.aggregates.named.custom import Aggregate
from ..engine.errors import FlowError
from ..engine.functions.user_function import check_function
from ..engine.keys.unkeyed import shown
from ..engine.operators.aggregation.aggregate_rows import END_ROW
from ..engine.operators.aggregation.aggregate_running import AggregateRunning
from ..engine.operators.aggregation.window_bounds import END, START
from ..engine.operators.keyed import KeyedOperator
from ..engine.time.row_windows import RowWindows
from .windows import AnyWindows, checked_emission, window_aggregate

_METHODS = {"create": (), "add": ("accumulator", "row"), "merge": ("a", "b"), "finish": ("accumulator",)}
"""The methods of a user-defined aggregate, with their arguments."""


def make_aggregate(keys: tuple[str, ...], aggregates: Mapping[str, Any], emit: str) -> AggregateRunning:
    """Make `aggregate` without windows. Raises FlowError for wrong aggregates, and for another `emit`."""
    if emit not in ("update", "final"):
        raise FlowError(f'aggregate(emit={emit!r}): expected "update" or "final"')
    return AggregateRunning(keys, check_aggregates(aggregates, keys), updates=emit == "update")


def make_window_aggregate(
    keys: tuple[str, ...], windows: AnyWindows, aggregates: Mapping[str, Any], emit: Any, every: Any, lateness: Any
) -> KeyedOperator:
    """Make `.window(...).aggregate(...)`. Raises FlowError for wrong arguments, and for a key with the name of a window's bound."""
    bounds = (END_ROW,) if isinstance(windows, RowWindows) else (START, END)
    taken = next((key for key in shown(keys) if key in bounds), None)
    if taken is not None:
        raise FlowError(
            f"aggregate: the result would have two columns `{taken}`, the key and the window's bound: rename the key first, for "
            f'example .rename({taken}="{taken.replace("window", "first")}").key_by("{taken.replace("window", "first")}")'
        )
    emission = checked_emission(emit, every, lateness)
    return window_aggregate(keys, check_aggregates(aggregates, (*shown(keys), *bounds)), windows, emission)


def check_aggregates(aggregates: Mapping[str, Any], taken: Iterable[str]) -> dict[str, AggregateFunction]:
    """Return the aggregates. Raises FlowError without any, for anything but an aggregate, and for a name of another column."""
    if not aggregates:
        raise FlowError("aggregate() needs at least one aggregate, for example n=ef.count()")
    for name, function in aggregates.items():
        if name == "on_error" and isinstance(function, str):
            raise FlowError(
                "aggregate has no on_error: a record goes into all aggregates of its key at once, and can't be removed again; "
                'put a map with on_error="skip" or "dead_letter" in front of it that refuses such records'
            )
        if not isinstance(function, AggregateFunction):
            raise FlowError(f'aggregate({name}={function!r}): expected an aggregate, for example ef.sum("delay")')
        if isinstance(function, Aggregate):
            for method, arguments in _METHODS.items():
                check_function(getattr(function, method), f"aggregate({name}=...): {type(function).__name__}.{method}", *arguments)
        if name in taken:
            raise FlowError(f"aggregate({name}=...): `{name}` is a column of the result already; choose another name")
    return dict(aggregates)
