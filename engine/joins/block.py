"""A block: rows of one side of a join, each with the hash of its key, its event time, and its due time.

Blocks are immutable. The due time, in microseconds, is when the row is decided: once the watermark is past it, no new row can
match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Times
from .rows import BlockRows, MemoryRows

Hashes = npt.NDArray[np.uint64]
RowIndices = npt.NDArray[np.intp]

PIECE = 65_536
"""The most rows of a piece of a block; only one piece needs to be in memory at a time."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one side: `held`, in memory or in a backend; `hashes`, `times`, `due`: one entry per row, in memory."""

    held: BlockRows
    hashes: Hashes
    times: Times
    due: Times

    @staticmethod
    def of(rows: pa.RecordBatch, hashes: Hashes, times: Times, due: Times) -> Block:
        """Return a block of rows in memory."""
        return Block(MemoryRows(rows), hashes, times, due)

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def rows(self) -> pa.RecordBatch:
        """Return the side's rows; those in a backend are read with every call."""
        return self.held.read()

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the side's rows."""
        return self.held.schema

    def pieces(self) -> Iterator[Block]:
        """Cut the block into blocks of at most `PIECE` rows in memory."""
        for first in range(0, len(self), PIECE):
            piece = self.slice(first, min(PIECE, len(self) - first))
            yield Block.of(piece.rows, piece.hashes, piece.times, piece.due)

    def take(self, places: npt.NDArray[np.integer]) -> Block:
        """Return the rows with these indices, in this order."""
        return Block(self.held.take(places), self.hashes[places], self.times[places], self.due[places])

    def filter(self, mask: npt.NDArray[np.bool_]) -> Block:
        """Return the rows that `mask` selects."""
        return self if mask.all() else Block(self.held.filter(mask), self.hashes[mask], self.times[mask], self.due[mask])

    def slice(self, start: int, length: int) -> Block:
        """Return `length` rows from `start`, not copied."""
        end = start + length
        return Block(self.held.slice(start, length), self.hashes[start:end], self.times[start:end], self.due[start:end])

    @property
    def nbytes(self) -> int:
        """Return the bytes of the block in memory."""
        return self.held.nbytes + self.hashes.nbytes + self.times.nbytes + self.due.nbytes

    @staticmethod
    def concat(blocks: Sequence[Block]) -> Block:
        """Return one block of all rows; a column that was all null so far takes the others' type."""
        if len(blocks) == 1:
            return blocks[0]
        held = blocks[0].held.with_others([block.held for block in blocks[1:]])
        hashes, times, due = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("hashes", "times", "due"))
        return Block(held, hashes, times, due)
