"""A segment: rows of one side of a join, sorted by key hash and time, so that a batch is looked up at once.

Segments are immutable: a row disappears when the segment is rewritten or dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..batch import Times
from .block import Block, Hashes, RowIndices


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates: row `probed[i]` of the probing batch meets row `stored[i]` of the segment's block."""

    probed: RowIndices
    stored: RowIndices


class Segment:
    """Rows sorted by hash, then by time, then by arrival, in `block`."""

    def __init__(self, block: Block) -> None:
        """Take `block`, at least one row, as `sorted_rows` returns them."""
        self.block = block
        self.earliest, self.latest = int(self.block.times.min()), int(self.block.times.max())
        self.first_due, self.last_due = int(self.block.due.min()), int(self.block.due.max())
        self._count_at = (self.first_due + self.last_due) // 2 + 1

    def __len__(self) -> int:
        return len(self.block)

    def ranges(self, hashes: Hashes, low: Times | None, high: Times | None) -> tuple[RowIndices, RowIndices]:
        """Return, for each probing row, the first and behind the last index of rows with its hash and a time in [low, high].

        Sorted `hashes` are found several times as fast as others. `low` and `high` have one entry per probing row, None for any
        time.
        """
        distinct, bounds = self._distinct
        place = np.minimum(np.searchsorted(distinct, hashes), len(distinct) - 1)
        here = distinct[place] == hashes
        start = place if bounds is None else bounds[place]
        end = start + here if bounds is None else np.where(here, bounds[place + 1], start)
        if low is not None and (end > start).any() and int(low.max()) > self.earliest:
            start = _bisected(self.block.times, start, end, low, past=False)
        if high is not None and (end > start).any() and int(high.min()) < self.latest:
            end = _bisected(self.block.times, start, end, high, past=True)
        return start, end

    def find(self, hashes: Hashes, low: Times | None, high: Times | None) -> Candidates:
        """Return all candidates, those of one probing row together, by time."""
        start, end = self.ranges(hashes, low, high)
        return expanded(start, end)

    def due_in(self, start: int, end: int) -> Block | None:
        """Return the rows with a due time in [start, end), sorted as the segment's; None if there is none."""
        if self.last_due < start or self.first_due >= end:
            return None
        due = self.block.due
        first, last = np.searchsorted(due, [start, end], "left", sorter=self._by_due)
        return self.block.take(np.sort(self._by_due[first:last])) if last > first else None

    def mostly_before(self, time: int) -> bool:
        """Return True if at least half of the rows are due before `time`.

        Counts them only now and then: half way to the end, and again.
        """
        if time < self._count_at:
            return False
        self._count_at = (time + self.last_due) // 2
        return 2 * int(np.count_nonzero(self.block.due < time)) >= len(self)

    @cached_property
    def _distinct(self) -> tuple[Hashes, RowIndices | None]:
        """Return the distinct hashes, and where the rows of each begin, with the number of rows last; None if each has one row."""
        hashes = self.block.hashes
        starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        return (hashes, None) if len(starts) == len(hashes) else (hashes[starts], np.append(starts, len(hashes)))

    @cached_property
    def _by_due(self) -> RowIndices:
        return np.argsort(self.block.due, kind="stable")

    def nbytes(self) -> int:
        """Return an estimate of its bytes, with the indices that look-ups have made so far."""
        distinct, bounds = self.__dict__.get("_distinct", (None, None))
        return self.block.nbytes + (0 if bounds is None else distinct.nbytes + bounds.nbytes)


def expanded(start: RowIndices, end: RowIndices) -> Candidates:
    """Return every index of each range, with the number of its range."""
    counts = np.maximum(end - start, 0)
    probed = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return Candidates(probed, np.arange(len(probed)) - before[probed] + start[probed])


def sorted_rows(block: Block, *, of_runs: bool = False) -> Block:
    """Return the rows sorted by hash and time, those with both equal in their present order.

    `of_runs`: they are a few sorted runs, one behind the other.
    """
    if len(block) < 2:
        return block
    order = np.argsort(block.hashes, kind="stable") if of_runs else _stable_order(block.hashes)
    hashes, times = block.hashes[order], block.times[order]
    same = hashes[1:] == hashes[:-1]
    back = same & (times[1:] < times[:-1])
    if back.any():
        of_hash = np.cumsum(np.append(False, ~same))
        disordered = np.zeros(int(of_hash[-1]) + 1, np.bool_)
        disordered[of_hash[1:][back]] = True
        places = np.flatnonzero(disordered[of_hash])
        order[places] = order[places][np.lexsort((times[places], hashes[places]))]
    return block.take(order)


def _stable_order(hashes: Hashes) -> RowIndices:
    """Return what `argsort` with kind="stable" does, in a seventh of the time.

    It sorts numbers whose low bits are the rows' indices.
    """
    low = (np.uint64(1) << np.uint64(len(hashes).bit_length())) - np.uint64(1)
    marked = (hashes & ~low) | np.arange(len(hashes), dtype=np.uint64)
    marked.sort()
    order = (marked & low).astype(np.intp)
    ordered = hashes[order]
    if (ordered[1:] < ordered[:-1]).any():  # different hashes have equal high bits
        return np.argsort(hashes, kind="stable")
    return order


def _bisected(times: Times, start: RowIndices, end: RowIndices, bounds: Times, *, past: bool) -> RowIndices:
    """Return, for each range of rising times, the first index with a time >= the bound, or > the bound if `past`."""
    low, high = start.copy(), np.maximum(end, start)
    active = np.flatnonzero(low < high)
    while len(active):
        middle = (low[active] + high[active]) // 2
        found: npt.NDArray[np.bool_] = times[middle] <= bounds[active] if past else times[middle] < bounds[active]
        low[active] = np.where(found, middle + 1, low[active])
        high[active] = np.where(found, high[active], middle)
        active = active[low[active] < high[active]]
    return low
