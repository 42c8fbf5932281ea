"""From a worker's settings to where an operator's columns of state lie: arrays in memory, or rows in a backend."""

from __future__ import annotations

from ..state.backends.settings import MEMORY
from .key_table import KeyTable
from .memory_panes import MemoryPanes
from .operators.base import Context
from .panes import Panes
from .stored_panes import StoredPanes
from .stored_table import StoredTable
from .summary import Summariser
from .table import Table


def open_table(summariser: Summariser, context: Context) -> Table:
    """An empty table. Raises StateBackendError if there is no room, or no server."""
    if context.state.backend == MEMORY:
        return KeyTable(summariser, context.key_groups)
    return StoredTable(summariser, context)


def open_panes(summariser: Summariser, context: Context) -> Panes:
    """No panes yet. Raises StateBackendError if there is no room, or no server."""
    if context.state.backend == MEMORY:
        return MemoryPanes(summariser, context)
    return StoredPanes(summariser, context)
