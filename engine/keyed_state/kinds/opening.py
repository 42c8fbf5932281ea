"""The choice of an operator's implementation of columnar state by the worker's settings: arrays in memory, or rows in a backend.

Each implementation is imported when it is first opened: a worker needs one or two of them, and planning needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....state.backends.settings import MEMORY
from ...aggregates.partial_aggregates import PartialAggregator
from ...context import Context
from ..arrays import StateArrays
from ..panes import Panes
from ..series import Series
from ..table import AggregateTable

if TYPE_CHECKING:
    from .row_store import RowPlace


def open_table(aggregator: PartialAggregator, context: Context) -> AggregateTable:
    """Return an empty table. Raises StateBackendError if storage or the server is not available."""
    if context.state.backend == MEMORY:
        from ..memory.memory_table import MemoryTable

        return MemoryTable(aggregator, context.key_groups)
    from ..stored.stored_table import StoredTable

    return StoredTable(aggregator, context)


def open_panes(aggregator: PartialAggregator, context: Context) -> Panes:
    """Return panes without keys. Raises StateBackendError if storage or the server is not available."""
    if context.state.backend == MEMORY:
        from ..memory.memory_panes import MemoryPanes

        return MemoryPanes(aggregator, context)
    from ..stored.stored_panes import StoredPanes

    return StoredPanes(aggregator, context)


def open_series(aggregator: PartialAggregator, context: Context, *, falls_due: bool) -> Series:
    """Return series without keys; `falls_due`: `take_before` is called.

    Raises StateBackendError if storage or the server is not available.
    """
    if context.state.backend == MEMORY:
        from ..memory.memory_series import MemorySeries

        series = MemorySeries(aggregator, context)
        aggregator.when_rebound(series.carry_over)
        return series
    from ..stored.stored_series import StoredSeries

    return StoredSeries(aggregator, context, falls_due=falls_due)


def open_row_place(context: Context, sides: int) -> RowPlace:
    """Return the storage of a join's rows. Raises StateBackendError if storage or the server is not available."""
    from ....state.backends.opening import open_backend
    from .row_store import RowPlace

    if context.state.backend == MEMORY:
        return RowPlace(None, sides)
    return RowPlace(open_backend(context.state, context.name, context.index, context.key_groups), sides)


def open_arrays(context: Context, keys: tuple[str, ...], state: Mapping[str, np.dtype[Any]]) -> StateArrays:
    """Return arrays without keys. Raises StateBackendError if storage or the server is not available."""
    if context.state.backend == MEMORY:
        from ..memory.memory_arrays import MemoryArrays

        return MemoryArrays(context, keys, state)
    from ..stored.stored_arrays import StoredArrays

    return StoredArrays(context, keys, state)
