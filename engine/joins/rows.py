"""The rows of a block of one side of a join, with their columns in memory or in a state backend.

Callers ask for values once per batch, by row index. Filtering and sorting move indices only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..types.exact import common, widened

RowIndices = npt.NDArray[np.integer]
Mask = npt.NDArray[np.bool_]

LARGE = 32_768
"""The size in rows from which on a table is not copied when blocks are merged. Rows read from several tables are copied twice."""


Tables = tuple[pa.RecordBatch, ...]
"""Tables of one schema. Their rows are numbered consecutively, from the first table's to the last one's."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Rows whose values were read: row `places[i]` of the tables for each `i`. A column is copied only if requested."""

    tables: Tables
    places: RowIndices

    def column(self, name: str) -> pa.Array:
        """Return the values of one column."""
        if len(self.tables) == 1:
            return self.tables[0].column(name).take(pa.array(self.places))
        return self.rows(name).column(0)

    def filter(self, mask: Mask) -> Reached:
        """Return the rows that `mask` selects."""
        return Reached(self.tables, self.places[mask])

    def rows(self, *columns: str) -> pa.RecordBatch:
        """Return the rows, with these columns or all."""
        return _taken(tuple(table.select(list(columns)) for table in self.tables) if columns else self.tables, self.places)


class BlockRows(ABC):
    """The rows of a block, immutable. `schema`: the columns."""

    schema: pa.Schema

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, places: RowIndices) -> Self:
        """Return the rows with these indices, in this order."""

    @abstractmethod
    def filter(self, mask: Mask) -> Self:
        """Return the rows that `mask` selects."""

    @abstractmethod
    def slice(self, start: int, length: int) -> Self:
        """Return `length` rows from `start`, not copied."""

    @abstractmethod
    def with_others(self, others: Sequence[BlockRows]) -> Self:
        """Return these rows, then `others` of the same storage; a column takes the type that holds those of all."""

    @abstractmethod
    def reached(self, places: RowIndices) -> Reached:
        """Return the rows with these indices, with their values. Raises StateBackendError if they can't be read."""

    @abstractmethod
    def read(self) -> pa.RecordBatch:
        """Return all rows. Raises StateBackendError if they can't be read."""

    @abstractmethod
    def kept(self) -> tuple[Mask, pa.RecordBatch]:
        """Return a mask of the rows that have not been forgotten, and these rows."""

    @abstractmethod
    def has_nulls(self, column: str) -> bool:
        """Return True if the column may have nulls."""

    def forget(self, mask: Mask) -> None:
        """Forget the rows that `mask` selects."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the bytes in memory."""


class MemoryRows(BlockRows):
    """Rows in memory. Forgetting does nothing.

    `placed`: tables, and the indices of the rows in them, None for all in their order. Sorting and selecting change the indices,
    and merging copies small tables only; rows are copied one by one when they are read. Invariant: the tables have at most twice
    the rows, so discarded rows keep little memory.
    """

    __slots__ = ("placed", "schema")

    def __init__(self, *tables: pa.RecordBatch, places: RowIndices | None = None) -> None:
        """Replace the tables by their rows at `places` if these are few."""
        self.placed: tuple[Tables, RowIndices | None] = tables, places
        self.schema = tables[0].schema
        if places is not None and 2 * len(places) < _rows_in(tables):
            self.read()

    def __len__(self) -> int:
        tables, places = self.placed
        return _rows_in(tables) if places is None else len(places)

    def take(self, places: RowIndices) -> MemoryRows:
        return MemoryRows(*self.placed[0], places=self._in_tables(places))

    def filter(self, mask: Mask) -> MemoryRows:
        return self.take(np.flatnonzero(mask))

    def slice(self, start: int, length: int) -> MemoryRows:
        tables, places = self.placed
        if places is not None:
            return MemoryRows(*tables, places=places[start : start + length])
        return MemoryRows(self.read().slice(start, length))

    def with_others(self, others: Sequence[BlockRows]) -> MemoryRows:
        parts = [rows.placed if isinstance(rows, MemoryRows) else ((rows.read(),), None) for rows in (self, *others)]
        tables = _with_few_small([table for of, _ in parts for table in of])
        if all(places is None for _, places in parts):
            return MemoryRows(*tables)
        sizes = [_rows_in(of) for of, _ in parts]
        begins = np.cumsum([0, *sizes[:-1]])
        placed = [np.arange(size) if places is None else places for size, (_, places) in zip(sizes, parts, strict=True)]
        return MemoryRows(*tables, places=_small(np.concatenate([first + places for first, places in zip(begins, placed, strict=True)])))

    def reached(self, places: RowIndices) -> Reached:
        return Reached(self.placed[0], self._in_tables(places))

    def read(self) -> pa.RecordBatch:
        tables, places = self.placed
        if places is None and len(tables) == 1:
            return tables[0]
        rows = _concat(tables) if places is None else _taken(tables, places)
        self.placed = (rows,), None
        return rows

    def kept(self) -> tuple[Mask, pa.RecordBatch]:
        return np.ones(len(self), np.bool_), self.read()

    def has_nulls(self, column: str) -> bool:
        return any(table.column(column).null_count for table in self.placed[0])

    @property
    def nbytes(self) -> int:
        tables, places = self.placed
        return sum(int(table.get_total_buffer_size()) for table in tables) + (0 if places is None else places.nbytes)

    def _in_tables(self, places: RowIndices) -> RowIndices:
        known = self.placed[1]
        return _small(places if known is None else known[places])


def _small(places: RowIndices) -> RowIndices:
    """Return the indices as numbers of four bytes; there is one for each row that is kept."""
    return places.astype(np.uint32, copy=False)


def _rows_in(tables: Sequence[pa.RecordBatch]) -> int:
    return sum(int(table.num_rows) for table in tables)


def _concat(tables: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return Batch.concat([Batch(table) for table in tables]).rows


def _with_few_small(tables: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the same rows in tables of one schema, without small neighbours, and without copying a large one again."""
    schema = tables[0].schema
    if any(not table.schema.equals(schema) for table in tables):
        schema = common([table.schema for table in tables])
    runs = groupby([widened(table, schema) for table in tables], key=lambda table: table.num_rows >= LARGE)
    return [table for large, run in runs for table in (run if large else [_concat(list(run))])]


def _taken(tables: Tables, places: RowIndices) -> pa.RecordBatch:
    """Take the rows with these indices table by table, then order them. Arrow's `take` of chunks would copy all tables."""
    if len(tables) == 1:
        return tables[0].take(pa.array(places))
    ends = np.cumsum([table.num_rows for table in tables])
    of = np.searchsorted(ends, places, side="right").astype(np.uint16)
    counts = np.bincount(of, minlength=len(tables))
    order = np.argsort(of, kind="stable")
    pieces = np.split(places[order].astype(np.int64), np.cumsum(counts)[:-1])
    found = [
        table.take(pa.array(piece - (end - table.num_rows))) for table, piece, end in zip(tables, pieces, ends, strict=True) if len(piece)
    ]
    rows = _concat(found or [tables[0].slice(0, 0)])
    if len(found) < 2 or (order[1:] > order[:-1]).all():
        return rows
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return rows.take(pa.array(place))
