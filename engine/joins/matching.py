"""Matching of rows of one side of a join with rows of the other: equal keys, and a time within bounds.

Hashes find candidates, keys decide. As in SQL, a null in a key equals nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..batch import Times
from ..keys.equality import equal_values
from .block import Block, RowIndices
from .row_log import RowLog, TimeBounds
from .rows import Reached
from .segment import Candidates, Segment, expanded

PIECE = 262_144
"""The approximate number of pairs made at a time, so that a hot key doesn't cost memory for all its pairs at once."""

ANY_TIME: TimeBounds = None, None


MatchCondition = Callable[[Block, Candidates, Times, Reached], npt.NDArray[np.bool_]]
"""A further condition on candidates of a probing block, with the stored rows and their times; returns a mask, shape
(candidates,).
"""


class Matcher:
    """Matches blocks of one side, in memory, with the log of the other.

    `probing`, `stored`: the names of both sides' key columns.
    """

    def __init__(self, probing: tuple[str, ...], stored: tuple[str, ...], condition: MatchCondition | None = None) -> None:
        self._probing, self._stored, self._condition = probing, stored, condition

    def pairs(self, block: Block, log: RowLog, bounds: TimeBounds) -> Iterator[tuple[Block, Block]]:
        """Yield matching rows in pairs: rows of `block`, and rows of the log."""
        for segment in log.reached(bounds):
            stored = segment.block
            for found, reached in self._met(block, segment, bounds):
                if len(found.probed):
                    rows = (reached if reached is not None else stored.held.reached(found.stored)).rows()
                    there = found.stored
                    yield block.take(found.probed), Block.of(rows, stored.hashes[there], stored.times[there], stored.due[there])

    def matched(self, block: Block, log: RowLog, bounds: TimeBounds) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows of `block` that have a match, shape (rows,)."""
        mask = np.zeros(len(block), np.bool_)
        for segment in log.reached(bounds):
            for found in self.found(block, segment, bounds):
                mask[found.probed] = True
        return mask

    def found(self, block: Block, segment: Segment, bounds: TimeBounds) -> Iterator[Candidates]:
        """Yield the matches of `block` in one segment, in pieces; those of one probing row are together, by time."""
        return (found for found, _ in self._met(block, segment, bounds))

    def ranges(self, block: Block, segment: Segment, bounds: TimeBounds) -> tuple[RowIndices, RowIndices]:
        """Return the range of candidates of each row of `block`: the first, and the one behind the last. Empty for a null in a
        key.
        """
        start, end = segment.ranges(block.hashes, *bounds)
        known = without_nulls(block, self._probing)
        return start, end if known is None else np.where(known, end, start)

    def equal(self, block: Block, stored: Block, found: Candidates) -> npt.NDArray[np.bool_]:
        """Return a mask of the candidates, with equal hashes, whose keys are equal, shape (candidates,)."""
        if self._hashes_decide(block, stored) or not len(found.probed):
            return np.ones(len(found.probed), np.bool_)
        return self._equal(block, found, stored.held.reached(found.stored))

    def _met(self, block: Block, segment: Segment, bounds: TimeBounds) -> Iterator[tuple[Candidates, Reached | None]]:
        """Yield what `found` does, with the stored rows if they were read."""
        start, end = self.ranges(block, segment, bounds)
        for first, last in _pieces(np.maximum(end - start, 0)):
            found = expanded(start[first:last], end[first:last])
            found, reached = Candidates(found.probed + first, found.stored), None
            if len(found.probed) and not self._hashes_decide(block, segment.block):
                reached = segment.block.held.reached(found.stored)
                found, reached = _kept(found, reached, self._equal(block, found, reached))
            if len(found.probed) and self._condition is not None:
                reached = reached if reached is not None else segment.block.held.reached(found.stored)
                found, reached = _kept(found, reached, self._condition(block, found, segment.block.times[found.stored], reached))
            yield found, reached

    def _equal(self, block: Block, found: Candidates, reached: Reached) -> npt.NDArray[np.bool_]:
        mask, probing = np.ones(len(found.probed), np.bool_), block.held.reached(found.probed)
        for ours, theirs in zip(self._probing, self._stored, strict=True):
            mask &= equal_values(probing.column(ours), reached.column(theirs))
        return mask

    def _hashes_decide(self, block: Block, stored: Block) -> bool:
        """Return True if equal hashes mean equal keys."""
        return _hash_is_key(block, self._probing) and _hash_is_key(stored, self._stored)


def without_nulls(block: Block, keys: Sequence[str]) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the rows of `block` whose key has no null, shape (rows,); None for all."""
    mask: npt.NDArray[np.bool_] | None = None
    for name in keys:
        if block.held.has_nulls(name):
            column = block.rows.column(name)
            valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
            mask = valid if mask is None else mask & valid
    return mask


def plain(column: pa.Array) -> pa.Array:
    """Return the column without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _hash_is_key(block: Block, keys: Sequence[str]) -> bool:
    """Return True if different keys have different hashes: the hash of one signed integer is a bijection."""
    return len(keys) == 1 and pa.types.is_signed_integer(block.schema.field(keys[0]).type) and not block.held.has_nulls(keys[0])


def _kept(found: Candidates, reached: Reached, mask: npt.NDArray[np.bool_]) -> tuple[Candidates, Reached]:
    return (found, reached) if mask.all() else (Candidates(found.probed[mask], found.stored[mask]), reached.filter(mask))


def _pieces(counts: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of probing rows with about `PIECE` candidates each, at least one row."""
    total = np.cumsum(counts)
    first, done = 0, 0
    while first < len(counts):
        last = max(first + 1, int(np.searchsorted(total, done + PIECE, "right")))
        yield first, last
        done, first = int(total[last - 1]), last
