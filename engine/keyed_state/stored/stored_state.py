"""The base of state with rows in a backend: they are moved, saved and measured independent of their content."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from ...batch import Batch
from ...protocol.routing import Move
from ...snapshots.changes import Changes
from ..base import KeyedState, StateTransfer
from .stored_rows import StoredRows, ToBatch


class StoredState(KeyedState):
    """The base of state kept in `_rows`, which a subclass reads and writes."""

    def __init__(self, rows: StoredRows) -> None:
        self._rows = rows
        self.passes_on = rows.backend.passes_on

    @abstractmethod
    def _saving(self) -> ToBatch:
        """Return the function that makes chunks of a snapshot that begins now."""

    def snapshot(self) -> Iterator[Batch]:
        saved = self._saving()
        return (saved(columns, rows) for columns, rows in self._rows.snapshot())

    def changes(self) -> Changes | None:
        return self._rows.changes()

    def delta(self, changes: Changes) -> Iterator[Batch]:
        return self._rows.delta(changes, self._saving())

    def depart(self, move: Move) -> StateTransfer:
        return self._rows.depart(move)

    @property
    def nbytes(self) -> int:
        return self._rows.backend.nbytes()

    def close(self) -> None:
        self._rows.backend.close()
