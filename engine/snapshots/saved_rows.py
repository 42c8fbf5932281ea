"""The rows of a checkpoint that a worker has read, numbered in the order in which they were added.

>>> rows = SavedRows()
>>> [rows.add(pa.record_batch({"key": chunk})) for chunk in ([7, 8], [9])]
[True, False]
>>> rows.close()
>>> [piece.to_pydict() for piece in rows.take(np.array([1, 2]))]
[{'key': [8, 9]}]
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.files import CHUNK_BYTES, CHUNK_ROWS

Rows = npt.NDArray[np.int64]
"""Numbers of rows, ascending."""


class SavedRows:
    """Rows in blocks of chunks with equal schemas. `free` gives up the memory of rows that are no longer needed.

    Rows are taken from one block after the other, so few are better. A chunk that fills a block is not copied.
    """

    def __init__(self) -> None:
        self._blocks: list[pa.RecordBatch | None] = []
        self._ends: list[int] = [0]
        """The number of rows before each block, and at the end."""
        self._open: list[pa.RecordBatch] = []
        self._open_rows: int = 0
        self._open_bytes: int = 0

    def __len__(self) -> int:
        return self._ends[-1]

    @property
    def nbytes(self) -> int:
        """An estimate of their bytes."""
        return self._open_bytes + sum(int(block.nbytes) for block in self._blocks if block is not None)

    def add(self, chunk: pa.RecordBatch) -> bool:
        """Add a chunk; return True if its schema, metadata included, differs from that of the last one."""
        new: bool = not self._open or not alike(chunk, self._open[-1])
        if new or self._open_rows >= CHUNK_ROWS or self._open_bytes >= CHUNK_BYTES:
            self.close()
        self._open.append(chunk)
        self._open_rows += chunk.num_rows
        self._open_bytes += chunk.nbytes
        return new

    def take(self, rows: Rows) -> list[pa.RecordBatch]:
        """Return these rows, in order, in as few pieces as their schemas allow; after `close`."""
        cuts = np.searchsorted(rows, self._ends).tolist()
        runs: list[list[pa.RecordBatch]] = []
        for block, first, (begin, end) in zip(self._blocks, self._ends, pairwise(cuts), strict=False):
            if block is not None and end > begin:
                piece = block.take(pa.array(rows[begin:end] - first))
                if runs and alike(runs[-1][0], piece):
                    runs[-1].append(piece)
                else:
                    runs.append([piece])
        return [pa.concat_batches(run) for run in runs]

    def free(self, before: int) -> None:
        """Give up the blocks that have only rows before number `before`."""
        for place in range(bisect_right(self._ends, before) - 1):
            self._blocks[place] = None

    def close(self) -> None:
        """Note that all chunks are here."""
        if self._open:
            self._blocks.append(self._open[0] if len(self._open) == 1 else pa.concat_batches(self._open))
            self._ends.append(self._ends[-1] + self._open_rows)
            self._open, self._open_rows, self._open_bytes = [], 0, 0


def alike(some: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Return True if two chunks have equal schemas, metadata included."""
    return bool(some.schema.equals(other.schema, check_metadata=True))
