"""The rows of a block of one side of a join, wherever their columns lie: in memory, or in a state backend.

Whoever needs values says for which rows, once for a whole batch; what selects and sorts rows touches no values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch

Places = npt.NDArray[np.integer]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Reached:
    """Rows whose values are at hand: row `places[i]` of `table` for each `i`. A column that nobody asks for is not copied."""

    table: pa.RecordBatch
    places: Places

    def column(self, name: str) -> pa.Array:
        """The values of one column."""
        return self.table.column(name).take(pa.array(self.places))

    def filter(self, mask: Mask) -> Reached:
        """The rows that `mask` selects."""
        return Reached(self.table, self.places[mask])

    def rows(self, *columns: str) -> pa.RecordBatch:
        """The rows, with these columns or all."""
        table = self.table.select(list(columns)) if columns else self.table
        return table.take(pa.array(self.places))


class Rows(ABC):
    """Immutable. `schema`: the columns."""

    schema: pa.Schema

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, places: Places) -> Self:
        """The rows at these places, in this order."""

    @abstractmethod
    def filter(self, mask: Mask) -> Self:
        """The rows that `mask` selects."""

    @abstractmethod
    def slice(self, start: int, length: int) -> Self:
        """`length` rows from `start`, not copied."""

    @abstractmethod
    def with_others(self, others: Sequence[Rows]) -> Self:
        """These rows, then `others`, which lie in the same place; a column that was all null so far takes the others' type."""

    @abstractmethod
    def reached(self, places: Places) -> Reached:
        """The rows at these places, with their values. Raises StateBackendError if they can't be read."""

    @abstractmethod
    def read(self) -> pa.RecordBatch:
        """All rows. Raises StateBackendError if they can't be read."""

    @abstractmethod
    def kept(self) -> tuple[Mask, pa.RecordBatch]:
        """Which of the rows have not been forgotten, and these rows."""

    @abstractmethod
    def has_nulls(self, column: str) -> bool:
        """Whether the column may have nulls."""

    def forget(self, mask: Mask) -> None:
        """The rows that `mask` selects are needed no more."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes in memory."""


class MemoryRows(Rows):
    """Rows in memory; nothing is done for those that are forgotten.

    `placed`: a table, and the places of the rows in it, None for all in their order. Sorting and selecting change the places, and merging
    adds tables up; rows are copied one by one when they are read. Invariant: a table has at most twice the rows, so rows that are gone keep
    little memory.
    """

    __slots__ = ("placed", "schema")

    def __init__(self, table: pa.RecordBatch, places: Places | None = None) -> None:
        """`table` is replaced by its rows at `places` if these are few."""
        self.placed: tuple[pa.RecordBatch, Places | None] = table, places
        self.schema = table.schema
        if places is not None and 2 * len(places) < table.num_rows:
            self.read()

    def __len__(self) -> int:
        table, places = self.placed
        return int(table.num_rows) if places is None else len(places)

    def take(self, places: Places) -> MemoryRows:
        return MemoryRows(self.placed[0], self._in_table(places))

    def filter(self, mask: Mask) -> MemoryRows:
        return self.take(np.flatnonzero(mask))

    def slice(self, start: int, length: int) -> MemoryRows:
        table, places = self.placed
        return MemoryRows(table.slice(start, length)) if places is None else MemoryRows(table, places[start : start + length])

    def with_others(self, others: Sequence[Rows]) -> MemoryRows:
        parts = [rows.placed if isinstance(rows, MemoryRows) else (rows.read(), None) for rows in (self, *others)]
        begins = np.cumsum([0, *(part.num_rows for part, _ in parts)])
        table = Batch.concat([Batch(part) for part, _ in parts]).rows
        if all(places is None for _, places in parts):
            return MemoryRows(table)
        placed = [np.arange(part.num_rows) if places is None else places for part, places in parts]
        return MemoryRows(table, _small(np.concatenate([first + places for first, places in zip(begins, placed, strict=False)])))

    def reached(self, places: Places) -> Reached:
        return Reached(self.placed[0], self._in_table(places))

    def read(self) -> pa.RecordBatch:
        table, places = self.placed
        if places is not None:
            table = table.take(pa.array(places))
            self.placed = table, None
        return table

    def kept(self) -> tuple[Mask, pa.RecordBatch]:
        return np.ones(len(self), np.bool_), self.read()

    def has_nulls(self, column: str) -> bool:
        return bool(self.placed[0].column(column).null_count)

    @property
    def nbytes(self) -> int:
        table, places = self.placed
        return int(table.get_total_buffer_size()) + (0 if places is None else places.nbytes)

    def _in_table(self, places: Places) -> Places:
        known = self.placed[1]
        return _small(places if known is None else known[places])


def _small(places: Places) -> Places:
    """As numbers of four bytes, of which there is one for each row that is kept."""
    return places.astype(np.uint32, copy=False)
