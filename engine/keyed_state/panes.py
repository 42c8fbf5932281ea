"""The interface of windows' state: partial aggregates of the panes that windows still need, in memory or in a backend."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.partial_aggregates import PANE, PartialAggregates
from .base import KeyedState


class Panes(KeyedState):
    """Used by one thread. A pane is identified by its start (microseconds)."""

    @abstractmethod
    def starts(self) -> Collection[int]:
        """The panes that have keys."""

    def __len__(self) -> int:
        return len(self.starts())

    @abstractmethod
    def append(self, partial: PartialAggregates, panes: npt.NDArray[np.int64]) -> None:
        """Add partial aggregates; `panes` has the pane of each row. Keys may repeat."""

    @abstractmethod
    def window(self, panes: Sequence[int]) -> Iterator[PartialAggregates]:
        """All rows of these panes, every key once, in pieces, so that they needn't all be in memory at once."""

    @abstractmethod
    def drop(self, panes: Sequence[int]) -> None:
        """Forget these panes."""

    def check(self, schema: pa.Schema) -> None:
        if PANE not in schema.names:
            raise TypeError("it is not of aggregates in windows")


def distinct(panes: npt.NDArray[np.int64]) -> list[int]:
    """The distinct panes, rising. Most batches have one; a batch with only late rows has none."""
    if not len(panes) or (panes == panes[0]).all():
        return panes[:1].tolist()  # type: ignore[no-any-return]
    return np.unique(panes).tolist()  # type: ignore[no-any-return]
