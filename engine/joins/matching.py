"""Finds the rows of one side of a join that match rows of the other: equal keys, and a time within bounds.

Hashes find candidates, keys decide. As in SQL, a null in a key equals nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..batch import Times
from .block import Block, Places
from .row_log import RowLog
from .segment import Found, Segment, expanded

PIECE = 262_144
"""Pairs that are made at a time, about: a hot key must not cost memory for all its pairs at once."""

Bounds = tuple[Times | None, Times | None]
"""The earliest and the latest time of a match for each probing row, None for any."""

ANY_TIME: Bounds = None, None


Condition = Callable[[Block, Block, Found], npt.NDArray[np.bool_]]
"""Which candidates match, of a probing block and a stored one, shape (candidates,)."""


class Matcher:
    """Matches blocks of one side with the log of the other. `probing`, `stored`: the names of the key columns of both."""

    def __init__(self, probing: tuple[str, ...], stored: tuple[str, ...], condition: Condition | None = None) -> None:
        self._probing, self._stored, self._condition = probing, stored, condition

    def pairs(self, block: Block, log: RowLog, bounds: Bounds) -> Iterator[tuple[Block, Block]]:
        """Matching rows, side by side: rows of `block`, and rows of the log."""
        for segment in log.segments:
            for found in self.found(block, segment, bounds):
                if len(found.probed):
                    yield block.take(found.probed), segment.block.take(found.stored)

    def matched(self, block: Block, log: RowLog, bounds: Bounds) -> npt.NDArray[np.bool_]:
        """Which rows of `block` have a match, shape (rows,)."""
        mask = np.zeros(len(block), np.bool_)
        for segment in log.segments:
            for found in self.found(block, segment, bounds):
                mask[found.probed] = True
        return mask

    def found(self, block: Block, segment: Segment, bounds: Bounds) -> Iterator[Found]:
        """The matches of `block` in one segment, in pieces; those of one probing row are together, by time."""
        start, end = self.ranges(block, segment, bounds)
        for first, last in _pieces(np.maximum(end - start, 0)):
            found = expanded(start[first:last], end[first:last])
            found = Found(found.probed + first, found.stored)
            if len(found.probed):
                found = _kept(found, self.equal(block, segment.block, found))
            if self._condition is not None and len(found.probed):
                found = _kept(found, self._condition(block, segment.block, found))
            yield found

    def ranges(self, block: Block, segment: Segment, bounds: Bounds) -> tuple[Places, Places]:
        """The range of candidates of each row of `block`: their first place, and the one behind the last. Empty for a null in a key."""
        start, end = segment.ranges(block.hashes, *bounds)
        known = without_nulls(block.rows, self._probing)
        return start, end if known is None else np.where(known, end, start)

    def equal(self, block: Block, stored: Block, found: Found) -> npt.NDArray[np.bool_]:
        """Which candidates, with equal hashes, have equal keys, shape (candidates,)."""
        mask = np.ones(len(found.probed), np.bool_)
        if _hash_is_key(block.rows, self._probing) and _hash_is_key(stored.rows, self._stored):
            return mask
        probed, place = pa.array(found.probed), pa.array(found.stored)
        for ours, theirs in zip(self._probing, self._stored, strict=True):
            both = pc.equal(plain(block.rows.column(ours)).take(probed), plain(stored.rows.column(theirs)).take(place))
            mask &= both.fill_null(False).to_numpy(zero_copy_only=False)
        return mask


def without_nulls(rows: pa.RecordBatch, keys: Sequence[str]) -> npt.NDArray[np.bool_] | None:
    """Which rows have a key without a null, shape (rows,); None for all."""
    mask: npt.NDArray[np.bool_] | None = None
    for name in keys:
        column = rows.column(name)
        if column.null_count:
            valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
            mask = valid if mask is None else mask & valid
    return mask


def plain(column: pa.Array) -> pa.Array:
    """The column without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _hash_is_key(rows: pa.RecordBatch, keys: Sequence[str]) -> bool:
    """Whether different keys have different hashes: the hash of one signed integer is a bijection."""
    kind = rows.schema.field(keys[0]).type
    return len(keys) == 1 and pa.types.is_signed_integer(kind) and not rows.column(keys[0]).null_count


def _kept(found: Found, mask: npt.NDArray[np.bool_]) -> Found:
    return found if mask.all() else Found(found.probed[mask], found.stored[mask])


def _pieces(counts: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of probing rows with about `PIECE` candidates each, at least one row."""
    total = np.cumsum(counts)
    first, done = 0, 0
    while first < len(counts):
        last = max(first + 1, int(np.searchsorted(total, done + PIECE, "right")))
        yield first, last
        done, first = int(total[last - 1]), last
