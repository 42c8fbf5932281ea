"""Operators of `.window(...)`: one for each kind of windows."""

from __future__ import annotations

from collections.abc import Mapping

from ..engine.aggregates.base import AggregateFunction
from ..engine.errors import FlowError
from ..engine.operators.aggregate_sessions import AggregateSessions
from ..engine.operators.aggregate_windows import AggregateWindows
from ..engine.operators.emission import ONCE, Emission
from ..engine.operators.keyed import KeyedOperator
from ..engine.time.windows import AnyWindows, Windows


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
    return AggregateSessions(keys, functions, windows)
