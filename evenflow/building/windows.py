"""Operators of `.window(...)`: one for each kind of windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.aggregates.base import AggregateFunction
from ..engine.errors import FlowError
from ..engine.functions.error_policy import check_on_error
from ..engine.functions.rows_encoder import SchemaLike, arrow_schema
from ..engine.functions.user_function import check_function
from ..engine.operators.aggregation.aggregate_rows import AggregateRows
from ..engine.operators.aggregation.aggregate_sessions import AggregateSessions
from ..engine.operators.aggregation.aggregate_windows import AggregateWindows
from ..engine.operators.aggregation.emission import ONCE, Emission
from ..engine.operators.aggregation.process_windows import ROWS, ProcessWindows
from ..engine.operators.keyed import KeyedOperator
from ..engine.time.row_windows import RowWindows
from ..engine.time.sessions import SessionWindows
from ..engine.time.windows import Windows

AnyWindows = Windows | SessionWindows | RowWindows
"""What `.window(...)` takes."""


def check_windows(value: Any) -> AnyWindows:
    """Raises FlowError unless `value` is windows."""
    if not isinstance(value, AnyWindows):
        choice = 'ef.tumbling("1h"), ef.sliding("1h", every="5m"), ef.session("10m") or ef.rows(1_000)'
        raise FlowError(f".window({value!r}): expected windows, for example {choice}")
    return value


def window_aggregate(
    keys: tuple[str, ...], functions: Mapping[str, AggregateFunction], windows: AnyWindows, emission: Emission
) -> KeyedOperator:
    """The operator that computes `functions` per key and window. Raises FlowError for an emission that these windows can't have."""
    if isinstance(windows, Windows):
        return AggregateWindows(keys, functions, windows, emission=emission)
    if emission != ONCE:
        raise FlowError(
            f"aggregate({emission.describe()}): {windows.describe()} windows can't be emitted more than once, because later rows change "
            "which windows there are; ef.tumbling and ef.sliding windows can"
        )
    if isinstance(windows, SessionWindows):
        return AggregateSessions(keys, functions, windows)
    return AggregateRows(keys, functions, windows)


def make_process(keys: tuple[str, ...], windows: AnyWindows, function: Any, schema: SchemaLike, on_error: str) -> ProcessWindows:
    """`.window(...).process(...)`. Raises FlowError for windows that count rows, what is no function of a window, or an error policy."""
    if isinstance(windows, RowWindows):
        raise FlowError(
            "process takes whole windows of event time: ef.rows has none; use aggregate, or key_by(...).process with your own state"
        )
    check_function(function, "process", "key", "window", "rows", yields=True, classes=True)
    keeps = AggregateSessions(keys, ROWS, windows) if isinstance(windows, SessionWindows) else AggregateWindows(keys, ROWS, windows)
    return ProcessWindows(keeps, function, arrow_schema(schema, "process"), check_on_error(on_error, "process"))
