"""The interface of running aggregates' state: a table with a row per key, in memory or in a backend."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.partial_aggregates import PANE, PartialAggregates, PartialAggregator
from ..batch import Batch
from ..state_description import PartsChange
from .base import KeyedState


class AggregateTable(KeyedState):
    """A row of partial aggregates per key. Used by one thread."""

    whole_keys = True
    aggregator: PartialAggregator

    @property
    @abstractmethod
    def key_types(self) -> Sequence[pa.DataType]:
        """The types of the key columns so far, none before the first key."""

    @abstractmethod
    def merge(self, partial: PartialAggregates) -> PartialAggregates:
        """Add partial aggregates with every key once; return the new rows of these keys."""

    @abstractmethod
    def known(self, keys: Sequence[pa.Array]) -> tuple[npt.NDArray[np.intp], PartialAggregates]:
        """Return the places in these distinct keys of those that have a row, and their rows, without key columns."""

    @abstractmethod
    def remove(self, keys: Sequence[pa.Array]) -> None:
        """Remove the rows of these distinct keys, which all have one."""

    @abstractmethod
    def everything(self) -> Iterator[PartialAggregates]:
        """Yield all keys, in pieces, so that they needn't all be in memory at once. Nothing is merged meanwhile."""

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        return self.aggregator.adapted(chunk, change)

    def install(self, chunk: Batch) -> None:
        partial, _ = self.aggregator.from_batch(chunk)
        self.merge(partial)

    def check(self, schema: pa.Schema) -> None:
        if PANE in schema.names:
            raise TypeError("it is of aggregates in windows")
