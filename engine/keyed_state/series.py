"""The interface of the state of sessions and count windows: for each key a series, rows of partial aggregates at int64 positions.

A batch is processed between `read` and `write`. The content of rows is looked up only on request, and unchanged rows are not
written.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates import ragged
from ..aggregates.partial_aggregates import PANE, PartialAggregates, PartialAggregator
from ..batch import Batch
from ..keys.encoding import encode_keys
from ..state_description import PartsChange
from .base import KeyedState

Codes = npt.NDArray[Any]
Positions = npt.NDArray[np.int64]
Where = npt.NDArray[np.int64]
NOWHERE: Where = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Rows of series: the key of each as `codes`, below the number of keys, and its position, both of shape (rows,).

    So `partial` has no key columns.
    """

    codes: Codes
    positions: Positions
    partial: PartialAggregates


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows that were read; `partial` returns the content of those with some indices, without key columns."""

    codes: Codes
    positions: Positions
    partial: Callable[[Where], PartialAggregates]

    def at(self, where: Where) -> SeriesRows:
        """Return the rows with these indices."""
        return SeriesRows(self.codes[where], self.positions[where], self.partial(where))

    def __len__(self) -> int:
        return len(self.codes)


class Series(KeyedState):
    """The series of all keys. Positions of a key's rows differ. Used by one thread."""

    aggregator: PartialAggregator

    @abstractmethod
    def read(self, keys: Sequence[pa.Array]) -> FoundRows:
        """Return the series of these distinct keys (key columns), in any order. `write` must follow."""

    @abstractmethod
    def write(self, rows: SeriesRows, kept: Where = NOWHERE) -> None:
        """Replace the series of the keys that were read by `rows`, and by the found rows with the indices `kept`.

        A key without rows is forgotten.
        """

    @abstractmethod
    def take_before(self, position: int) -> Iterator[tuple[PartialAggregates, Positions]]:
        """Remove and return all rows at lower positions, in pieces. Take all pieces before the next call."""

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        return self.aggregator.adapted(chunk, change)

    def install(self, chunk: Batch) -> None:
        """Add the rows of a chunk to their keys' series."""
        partial, positions = self.aggregator.from_batch(chunk)
        if positions is None:
            raise TypeError("it has no positions")
        self.add(partial, positions)

    def add(self, partial: PartialAggregates, positions: Positions) -> None:
        """Add rows to their keys' series."""
        names = self.aggregator.keys
        keys = encode_keys(pa.record_batch(list(partial.keys), names=list(names)), names, self.aggregator.operator)
        found = self.read(keys.columns)
        self.write(SeriesRows(keys.codes, positions, replace(partial, keys=())), np.arange(len(found)))

    def check(self, schema: pa.Schema) -> None:
        if PANE not in schema.names:
            raise TypeError("it has no positions")


def joined(first: SeriesRows, second: SeriesRows) -> SeriesRows:
    """Concatenate the rows of both; the codes have the same meaning."""
    a, b = first.partial, second.partial
    parts = tuple(tuple(map(ragged.joined, zip(x, y, strict=True))) for x, y in zip(a.parts, b.parts, strict=True))
    partial = PartialAggregates((), np.concatenate([a.rows, b.rows]), parts)
    return SeriesRows(np.concatenate([first.codes, second.codes]), np.concatenate([first.positions, second.positions]), partial)
