"""A table of partial aggregates with a row per key: what the state of running aggregates is, wherever it lies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from ..aggregates.partial_aggregates import PANE, PartialAggregates
from .base import KeyedState


class Table(KeyedState):
    """Used by one thread."""

    @abstractmethod
    def merge(self, partial: PartialAggregates) -> PartialAggregates:
        """Add partial aggregates with every key once; returns the new rows of these keys."""

    @abstractmethod
    def everything(self) -> Iterator[PartialAggregates]:
        """All keys, in as many pieces as it takes not to hold them all at once. Nothing is merged meanwhile."""

    def check(self, schema: pa.Schema) -> None:
        if PANE in schema.names:
            raise TypeError("it is of aggregates in windows")
