"""Operators of `.window(...)`: one for each kind of windows."""

from __future__ import annotations

from collections.abc import Mapping

from ..engine.aggregates.base import AggregateFunction
from ..engine.operators.aggregate_sessions import AggregateSessions
from ..engine.operators.aggregate_windows import AggregateWindows
from ..engine.operators.keyed import KeyedOperator
from ..engine.time.sessions import SessionWindows
from ..engine.time.windows import AnyWindows


def window_aggregate(keys: tuple[str, ...], functions: Mapping[str, AggregateFunction], windows: AnyWindows) -> KeyedOperator:
    """The operator that computes `functions` per key and window."""
    if isinstance(windows, SessionWindows):
        return AggregateSessions(keys, functions, windows)
    return AggregateWindows(keys, functions, windows)
