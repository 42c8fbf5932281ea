"""Makes the operators of `.window(...)`, one for each kind of windows, and checks their emission."""

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
from ..engine.time.duration import microseconds
from ..engine.time.row_windows import RowWindows
from ..engine.time.sessions import SessionWindows
from ..engine.time.windows import Windows

AnyWindows = Windows | SessionWindows | RowWindows
"""The windows that `.window(...)` accepts."""


def check_windows(value: Any) -> AnyWindows:
    """Return the windows. Raises FlowError for anything else."""
    if not isinstance(value, AnyWindows):
        choice = 'ef.tumbling("1h"), ef.sliding("1h", every="5m"), ef.session("10m") or ef.rows(1_000)'
        raise FlowError(f".window({value!r}): expected windows, for example {choice}")
    return value


def window_aggregate(
    keys: tuple[str, ...], functions: Mapping[str, AggregateFunction], windows: AnyWindows, emission: Emission
) -> KeyedOperator:
    """Make the operator that computes `functions` per key and window. Raises FlowError for an emission that the windows lack."""
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


def make_window_process(keys: tuple[str, ...], windows: AnyWindows, function: Any, schema: SchemaLike, on_error: str) -> ProcessWindows:
    """Make `.window(...).process(...)`. Raises FlowError for windows that count rows, and for a wrong function or error policy."""
    if isinstance(windows, RowWindows):
        raise FlowError(
            "process takes whole windows of event time: ef.rows has none; use aggregate, or key_by(...).process with your own state"
        )
    check_function(function, "process", "key", "window", "rows", yields=True, classes=True)
    keeps = AggregateSessions(keys, ROWS, windows) if isinstance(windows, SessionWindows) else AggregateWindows(keys, ROWS, windows)
    return ProcessWindows(keeps, function, arrow_schema(schema, "process"), check_on_error(on_error, "process"))


def checked_emission(emit: Any, every: Any, lateness: Any) -> Emission:
    """Return the emission. Raises FlowError for another `emit`, an `every` without updates, and a wrong duration."""
    if emit not in ("final", "update"):
        raise FlowError(f'aggregate(emit={emit!r:.200}): expected "final" or "update"')
    if every is not None and emit != "update":
        raise FlowError(f'aggregate(every={every!r:.200}): results that are emitted once have no `every`; say emit="update", too')
    between = None if every is None else microseconds(every, "aggregate: every")
    if between == 0:
        raise FlowError(f"aggregate(every={every!r}): it must be longer than zero")
    return Emission(emit == "update", between, microseconds(lateness, "aggregate: lateness"))
