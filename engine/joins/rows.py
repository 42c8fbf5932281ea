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

    def rows(self) -> pa.RecordBatch:
        """The rows."""
        return self.table.take(pa.array(self.places))


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
    """Rows in memory; nothing is done for those that are forgotten."""

    __slots__ = ("_rows", "schema")

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows, self.schema = rows, rows.schema

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def take(self, places: Places) -> MemoryRows:
        return MemoryRows(self._rows.take(pa.array(places)))

    def filter(self, mask: Mask) -> MemoryRows:
        return MemoryRows(self._rows.filter(pa.array(mask)))

    def slice(self, start: int, length: int) -> MemoryRows:
        return MemoryRows(self._rows.slice(start, length))

    def with_others(self, others: Sequence[Rows]) -> MemoryRows:
        return MemoryRows(Batch.concat([Batch(rows.read()) for rows in (self, *others)]).rows)

    def reached(self, places: Places) -> Reached:
        return Reached(self._rows, places)

    def read(self) -> pa.RecordBatch:
        return self._rows

    def kept(self) -> tuple[Mask, pa.RecordBatch]:
        return np.ones(len(self), np.bool_), self._rows

    def has_nulls(self, column: str) -> bool:
        return bool(self._rows.column(column).null_count)

    @property
    def nbytes(self) -> int:
        return int(self._rows.get_total_buffer_size())
