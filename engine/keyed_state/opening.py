"""Chooses the implementation of an operator's columnar state from the worker's settings: arrays in memory, or rows in a backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...state.backends.opening import open_backend
from ...state.backends.settings import MEMORY
from ..aggregates.partial_aggregates import PartialAggregator
from ..operators.base import Context
from .arrays import StateArrays
from .memory_arrays import MemoryArrays
from .memory_panes import MemoryPanes
from .memory_series import MemorySeries
from .memory_table import MemoryTable
from .panes import Panes
from .row_store import RowPlace
from .series import Series
from .stored_arrays import StoredArrays
from .stored_panes import StoredPanes
from .stored_series import StoredSeries
from .stored_table import StoredTable
from .table import Table


def open_table(aggregator: PartialAggregator, context: Context) -> Table:
    """An empty table. Raises StateBackendError if there is no room, or no server."""
    if context.state.backend == MEMORY:
        return MemoryTable(aggregator, context.key_groups)
    return StoredTable(aggregator, context)


def open_panes(aggregator: PartialAggregator, context: Context) -> Panes:
    """Panes without keys. Raises StateBackendError if there is no room, or no server."""
    if context.state.backend == MEMORY:
        return MemoryPanes(aggregator, context)
    return StoredPanes(aggregator, context)


def open_series(aggregator: PartialAggregator, context: Context, *, falls_due: bool) -> Series:
    """Series without keys; `falls_due`: whether `take_before` is called. Raises StateBackendError if there is no room, or no server."""
    if context.state.backend == MEMORY:
        series = MemorySeries(aggregator, context)
        aggregator.when_rebound(series.carry_over)
        return series
    return StoredSeries(aggregator, context, falls_due=falls_due)


def open_row_place(context: Context, sides: int) -> RowPlace:
    """The place of the rows of a join. Raises StateBackendError if there is no room, or no server."""
    if context.state.backend == MEMORY:
        return RowPlace(None, sides)
    return RowPlace(open_backend(context.state, context.name, context.index, context.key_groups), sides)


def open_arrays(context: Context, keys: tuple[str, ...], state: Mapping[str, np.dtype[Any]]) -> StateArrays:
    """Arrays without keys. Raises StateBackendError if there is no room, or no server."""
    if context.state.backend == MEMORY:
        return MemoryArrays(context, keys, state)
    return StoredArrays(context, keys, state)
