"""An index of a table in memory: finds the rows with the given keys, a batch at a time.

The rows' 64-bit hashes are sorted, so a key's rows are a stretch, found by bisection. Rows whose hashes are equal are then
compared. A key with a null in one of its columns equals no other, as in SQL's joins.

>>> index = TableIndex([pa.array([7, 8, 7, None])], "lookup")
>>> keys, rows = index.find([pa.array([8, 7, 9, None])])
>>> keys.tolist(), rows.tolist()
([0, 1, 1], [1, 0, 2])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .encoding import key_hashes
from .equality import equal_values

RowIndices = npt.NDArray[np.intp]


class TableIndex:
    """An index over the key columns `columns` of a table, plain arrays.

    Raises RecordError, naming `operator`, for values that can't be keys.
    """

    def __init__(self, columns: Sequence[pa.Array], operator: str) -> None:
        self._columns, self._operator = list(columns), operator
        rows = np.flatnonzero(_complete(columns))
        hashes = key_hashes([column.take(pa.array(rows)) for column in columns], operator)
        order = np.argsort(hashes, kind="stable")
        hashes, self._rows = hashes[order], rows[order]
        begins = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])) if len(hashes) else np.zeros(0, np.intp)
        self._hashes, self._begins = hashes[begins], np.append(begins, len(hashes))

    def find(self, columns: Sequence[pa.Array]) -> tuple[RowIndices, RowIndices]:
        """Return (index of the key, index of the row) for each match, in the order of the keys, then of the table.

        The key columns must have types of the same kinds as the table's.
        """
        hashes = key_hashes(columns, self._operator)
        first, counts = self._stretches(hashes)
        counts[~_complete(columns)] = 0
        keys = np.repeat(np.arange(len(counts)), counts)
        ends = np.cumsum(counts)
        rows = self._rows[np.arange(len(keys)) + np.repeat(first - ends + counts, counts)]
        equal = self._equal(columns, keys, rows)
        return (keys, rows) if equal.all() else (keys[equal], rows[equal])

    def repeated(self) -> int | None:
        """Return a row whose key an earlier row has; None if all keys differ."""
        for long in np.flatnonzero(np.diff(self._begins) > 1).tolist():
            stretch = np.sort(self._rows[self._begins[long] : self._begins[long + 1]])
            keys, rows = self.find([column.take(pa.array(stretch)) for column in self._columns])
            later = rows[rows > stretch[keys]]
            if len(later):
                return int(later[0])
        return None

    def _stretches(self, hashes: npt.NDArray[np.uint64]) -> tuple[RowIndices, RowIndices]:
        """Return, for each hash, the start of its stretch in `_rows` and its length."""
        if not len(self._hashes):
            return np.zeros(len(hashes), np.intp), np.zeros(len(hashes), np.intp)
        order = np.argsort(hashes)  # a bisection for rising hashes finds what it needs in the processor's cache: three times as fast
        found = np.empty(len(hashes), np.intp)
        found[order] = np.minimum(np.searchsorted(self._hashes, hashes[order]), len(self._hashes) - 1)
        begins = self._begins[found]
        return begins, np.where(self._hashes[found] == hashes, self._begins[found + 1] - begins, 0)

    def _equal(self, columns: Sequence[pa.Array], keys: RowIndices, rows: RowIndices) -> npt.NDArray[np.bool_]:
        """Return a mask of the pairs (key, row) whose keys are equal."""
        same = np.ones(len(keys), np.bool_)
        for column, own in zip(columns, self._columns, strict=True):
            same &= equal_values(column.take(pa.array(keys)), own.take(pa.array(rows)))
        return same


def _complete(columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows whose key has no null."""
    complete = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        if column.null_count:
            complete &= column.is_valid().to_numpy(zero_copy_only=False)
    return complete
