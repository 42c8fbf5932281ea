"""The partial aggregates of the panes that windows still need: what the state of windows is, wherever it lies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.partial_aggregates import PANE, PartialAggregates
from .base import KeyedState


class Panes(KeyedState):
    """Used by one thread. A pane is known by its start (microseconds)."""

    @abstractmethod
    def starts(self) -> Collection[int]:
        """The panes that have keys."""

    def __len__(self) -> int:
        return len(self.starts())

    @abstractmethod
    def append(self, partial: PartialAggregates, panes: npt.NDArray[np.int64]) -> None:
        """Add partial aggregates, the pane of each of their rows in `panes`; a key may be there repeatedly."""

    @abstractmethod
    def window(self, panes: Sequence[int]) -> Iterator[PartialAggregates]:
        """Everything in these panes, every key once, in as many pieces as it takes not to hold it all at once."""

    @abstractmethod
    def drop(self, panes: Sequence[int]) -> None:
        """Forget these panes."""

    def check(self, schema: pa.Schema) -> None:
        if PANE not in schema.names:
            raise TypeError("it is not of aggregates in windows")


def distinct(panes: npt.NDArray[np.int64]) -> list[int]:
    """The different panes, rising; most batches have one, and one whose rows were all late has none."""
    if not len(panes) or (panes == panes[0]).all():
        return panes[:1].tolist()  # type: ignore[no-any-return]
    return np.unique(panes).tolist()  # type: ignore[no-any-return]
