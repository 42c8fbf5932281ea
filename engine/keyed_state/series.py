"""The interface of the state of sessions and count windows: for each key a series, rows of partial aggregates at int64 positions.

A batch is processed between `read` and `write`, which exchange the whole series of the batch's keys: those are short.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates import ragged
from ..aggregates.partial_aggregates import PANE, PartialAggregates, PartialAggregator
from ..batch import Batch
from ..keys.encoding import encode_keys
from .base import KeyedState

Codes = npt.NDArray[Any]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of series: `codes`, below the number of keys, says whose each row is, and `positions` where it is, both of shape (rows,).

    So `partial` has no key columns.
    """

    codes: Codes
    positions: Positions
    partial: PartialAggregates


class Series(KeyedState):
    """Used by one thread. Positions of a key's rows differ."""

    def __init__(self, aggregator: PartialAggregator) -> None:
        self.aggregator = aggregator

    @abstractmethod
    def read(self, keys: Sequence[pa.Array]) -> Rows | None:
        """The series of these distinct keys (key columns), in any order; None if none of them has one. `write` must follow."""

    @abstractmethod
    def write(self, rows: Rows) -> None:
        """Replace the series of the keys that were read; a key without rows is forgotten."""

    @abstractmethod
    def take_before(self, position: int) -> Iterator[tuple[PartialAggregates, Positions]]:
        """Remove and return all rows at lower positions, in pieces. Take all pieces before the next call."""

    def install(self, chunk: Batch) -> None:
        """Rows are added to their keys' series."""
        partial, positions = self.aggregator.from_batch(chunk)
        if positions is None:
            raise TypeError("it has no positions")
        self.add(partial, positions)

    def add(self, partial: PartialAggregates, positions: Positions) -> None:
        """Add rows to their keys' series."""
        names = self.aggregator.keys
        keys = encode_keys(pa.record_batch(list(partial.keys), names=list(names)), names, self.aggregator.operator)
        self.write(joined(self.read(keys.columns), Rows(keys.codes, positions, replace(partial, keys=()))))

    def check(self, schema: pa.Schema) -> None:
        if PANE not in schema.names:
            raise TypeError("it has no positions")


def joined(first: Rows | None, second: Rows) -> Rows:
    """The rows of both; the codes have the same meaning."""
    if first is None:
        return second
    a, b = first.partial, second.partial
    parts = tuple(tuple(map(ragged.joined, zip(x, y, strict=True))) for x, y in zip(a.parts, b.parts, strict=True))
    partial = PartialAggregates((), np.concatenate([a.rows, b.rows]), parts)
    return Rows(np.concatenate([first.codes, second.codes]), np.concatenate([first.positions, second.positions]), partial)
