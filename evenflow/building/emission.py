"""Checks when a user wants the results of windows."""

from __future__ import annotations

from typing import Any

from ..engine.errors import FlowError
from ..engine.operators.aggregation.emission import Emission
from ..engine.time.duration import microseconds


def checked_emission(emit: Any, every: Any, lateness: Any) -> Emission:
    """The emission. Raises FlowError for another `emit`, an `every` without updates, and what is no duration."""
    if emit not in ("final", "update"):
        raise FlowError(f'aggregate(emit={emit!r:.200}): expected "final" or "update"')
    if every is not None and emit != "update":
        raise FlowError(f'aggregate(every={every!r:.200}): results that are emitted once have no `every`; say emit="update", too')
    between = None if every is None else microseconds(every, "aggregate: every")
    if between == 0:
        raise FlowError(f"aggregate(every={every!r}): it must be longer than zero")
    return Emission(emit == "update", between, microseconds(lateness, "aggregate: lateness"))
