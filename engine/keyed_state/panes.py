"""The interface of windows' state: partial aggregates of the panes that windows still need, in memory or in a backend."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.partial_aggregates import PANE, PartialAggregates, PartialAggregator
from ..batch import Batch
from ..state_description import PartsChange
from .base import KeyedState

Installed: TypeAlias = Callable[[PartialAggregates | None, npt.NDArray[np.int64] | None], None]
"""A callback for partial aggregates that arrived and their panes, or None if keys of any pane may have arrived."""


class Panes(KeyedState):
    """The partial aggregates of each pane; a pane is identified by its start (microseconds). Used by one thread."""

    aggregator: PartialAggregator
    _note: Installed | None = None

    @abstractmethod
    def starts(self) -> Collection[int]:
        """Return the panes that have keys."""

    def __len__(self) -> int:
        return len(self.starts())

    def append(self, partial: PartialAggregates, panes: npt.NDArray[np.int64]) -> None:
        """Add partial aggregates; `panes` has the pane of each row. Keys may repeat."""
        starts = distinct(panes)
        for start in starts:
            self._append(start, partial if len(starts) == 1 else partial.take(np.flatnonzero(panes == start)))

    @abstractmethod
    def _append(self, pane: int, partial: PartialAggregates) -> None:
        """Add partial aggregates to one pane."""

    @abstractmethod
    def window(self, panes: Sequence[int]) -> Iterator[PartialAggregates]:
        """Yield all rows of these panes, every key once, in pieces, so that they needn't all be in memory at once."""

    @abstractmethod
    def of_keys(self, panes: Sequence[int], keys: Sequence[pa.Array]) -> Iterator[PartialAggregates]:
        """Yield what `window` does, but only the rows of these distinct keys (key columns)."""

    def when_installed(self, note: Installed) -> None:
        """Register a callback for state that arrives by a move or a restore."""
        self._note = note

    def _installed(self, partial: PartialAggregates | None, panes: npt.NDArray[np.int64] | None) -> None:
        if self._note is not None:
            self._note(partial, panes)

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        return self.aggregator.adapted(chunk, change)

    def install(self, chunk: Batch) -> None:
        partial, panes = self.aggregator.from_batch(chunk)
        if panes is not None:
            self.append(partial, panes)
            self._installed(partial, panes)

    @abstractmethod
    def drop(self, panes: Sequence[int]) -> None:
        """Forget these panes."""

    def check(self, schema: pa.Schema) -> None:
        if PANE not in schema.names:
            raise TypeError("it is not of aggregates in windows")


def distinct(panes: npt.NDArray[np.int64]) -> list[int]:
    """Return the distinct panes, rising. Most batches have one; a batch with only late rows has none."""
    if not len(panes) or (panes == panes[0]).all():
        return panes[:1].tolist()  # type: ignore[no-any-return]
    return np.unique(panes).tolist()  # type: ignore[no-any-return]
