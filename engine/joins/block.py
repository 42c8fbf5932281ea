"""A block: rows of one side of a join, with what the join needs of each: the hash of its key, its event time, and its due time.

Blocks are immutable. The due time, in microseconds, is when the row's fate is decided: once the watermark is past it no new row can match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch, Times

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Block:
    """`rows`: the side's columns; `hashes`, `times`, `due`: one entry per row."""

    rows: pa.RecordBatch
    hashes: Hashes
    times: Times
    due: Times

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, places: npt.NDArray[np.integer]) -> Block:
        """The rows at these places, in this order."""
        return Block(self.rows.take(pa.array(places)), self.hashes[places], self.times[places], self.due[places])

    def filter(self, mask: npt.NDArray[np.bool_]) -> Block:
        """The rows that `mask` selects."""
        return self if mask.all() else Block(self.rows.filter(pa.array(mask)), self.hashes[mask], self.times[mask], self.due[mask])

    def slice(self, start: int, length: int) -> Block:
        """`length` rows from `start`, not copied."""
        end = start + length
        return Block(self.rows.slice(start, length), self.hashes[start:end], self.times[start:end], self.due[start:end])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and of what belongs to them."""
        return int(self.rows.get_total_buffer_size()) + self.hashes.nbytes + self.times.nbytes + self.due.nbytes

    @staticmethod
    def concat(blocks: Sequence[Block]) -> Block:
        """One block of all rows; a column that was all null so far takes the others' type."""
        if len(blocks) == 1:
            return blocks[0]
        rows = Batch.concat([Batch(block.rows) for block in blocks]).rows
        hashes, times, due = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("hashes", "times", "due"))
        return Block(rows, hashes, times, due)
