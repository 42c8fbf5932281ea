"""The rows that one side of a join keeps: a log of blocks in sorted segments, merged as they grow.

A batch of any size is looked up with a few searches in each segment that its times reach, and no Python runs per row. The number
of segments grows with the logarithm of the rows, or, if `widest` is set, with the event time that they span. Merging drops the
rows that are no longer needed. The log-structured merge is after O'Neil et al., "The log-structured merge-tree" (1996).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Times
from ..protocol.elements import MAX_TIME, MIN_TIME
from ..types.exact import common_schema
from .block import Block
from .segment import Segment, sorted_rows

RATIO = 4
"""A segment is merged with the one before it unless that has more than this many times its rows."""

SMALLEST = 4_096
"""The size below which segments are always merged, in rows."""

TimeBounds = tuple[Times | None, Times | None]
"""The earliest and the latest time of a match for each probing row, None for any."""

Selection = Callable[[Block], npt.NDArray[np.bool_]]
"""A function from a block to a mask of its rows."""


class RowLog:
    """The log of one side's rows. Used by one thread."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._forgotten = MIN_TIME
        self.drops: Selection | None = None
        """Selects rows of a sorted block that are no longer needed for another reason than their due time."""
        self.widest: int | None = None
        """The most event time that a merged segment may span; None: any.

        A look-up skips segments outside its bounds, and forgetting drops them at once.
        """

    def append(self, block: Block) -> None:
        """Keep these rows, which are sorted as in a segment."""
        if not len(block):
            return
        blocks, rows, columns = [block], len(block), block.schema
        while self.segments and self._merges(self.segments[-1], blocks, rows):
            common = common_schema(self.segments[-1].block.schema, columns)
            if common is None:
                break  # values of other types are never mixed, because that would convert them
            columns = common
            last = self._living(self.segments.pop())
            if last is not None:
                blocks.append(last)
                rows += len(last)
        merged = Segment(block if len(blocks) == 1 else sorted_rows(Block.concat(blocks[::-1]), of_runs=True))
        gone = None if self.drops is None else self.drops(merged.block)
        if gone is not None and gone.any():
            merged.block.held.forget(gone)
            merged = Segment(merged.block.filter(~gone))
        self.segments.append(merged)

    def reached(self, bounds: TimeBounds) -> list[Segment]:
        """Return the segments with rows within these bounds, which have one entry per probing row."""
        low, high = (None if times is None or not len(times) else times for times in bounds)
        earliest = MIN_TIME if low is None else int(low.min())
        latest = MAX_TIME if high is None else int(high.max())
        return [segment for segment in self.segments if segment.earliest <= latest and segment.latest >= earliest]

    def due_in(self, start: int, end: int) -> list[Block]:
        """Return the rows with a due time in [start, end)."""
        found = (segment.due_in(start, end) for segment in self.segments)
        return [block for block in found if block is not None]

    def due_times(self, start: int, end: int) -> Times:
        """Return the due times in [start, end), of all rows."""
        due = [segment.block.due for segment in self.segments]
        return np.concatenate([np.zeros(0, np.int64), *(times[(times >= start) & (times < end)] for times in due)])

    @staticmethod
    def of(blocks: Sequence[Block]) -> RowLog:
        """Return a log of these rows."""
        log = RowLog()
        log.segments = [Segment(sorted_rows(Block.concat(run))) for run in _alike(blocks)]
        return log

    def forget(self, before: int) -> None:
        """Forget rows with a due time before `before`. Their memory is freed as segments are dropped and merged."""
        self._forgotten = before
        kept = list[Segment]()
        for segment in self.segments:
            if segment.last_due < before:
                segment.block.held.forget(np.ones(len(segment), np.bool_))
            else:
                kept.append(segment if segment.first_due >= before else self._thinned(segment))
        self.segments = kept

    @property
    def oldest(self) -> int | None:
        """Return the earliest event time of a row that may still be needed, None without rows."""
        return min((segment.earliest for segment in self.segments), default=None)

    def cut_out(self, leaving: Selection) -> list[Block]:
        """Remove and return the rows that are selected."""
        gone: list[Block] = []
        left: list[Segment] = []
        for segment in self.segments:
            mask = leaving(segment.block)
            if not mask.any():
                left.append(segment)
                continue
            gone.append(segment.block.filter(mask))
            if not mask.all():
                left.append(Segment(segment.block.filter(~mask)))
        self.segments = left
        return gone

    def blocks(self) -> Iterator[Block]:
        """Return the blocks of all rows."""
        return (segment.block for segment in self.segments)

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    @property
    def nbytes(self) -> int:
        """Return an estimate of its bytes."""
        return sum(segment.nbytes() for segment in self.segments)

    def _merges(self, segment: Segment, blocks: Sequence[Block], rows: int) -> bool:
        """Return True to merge `segment` with the blocks behind it, which have `rows` rows."""
        if len(segment) + rows <= SMALLEST:
            return True
        if len(segment) > RATIO * rows:
            return False
        if self.widest is None:
            return True
        earliest = min(segment.earliest, *(int(block.times.min()) for block in blocks))
        latest = max(segment.latest, *(int(block.times.max()) for block in blocks))
        return latest - earliest <= self.widest

    def _living(self, segment: Segment) -> Block | None:
        if segment.first_due >= self._forgotten:
            return segment.block
        living = segment.block.due >= self._forgotten
        segment.block.held.forget(~living)
        return segment.block.filter(living) if living.any() else None

    def _thinned(self, segment: Segment) -> Segment:
        """Return the segment, without the forgotten rows once they are half of it."""
        if not segment.mostly_before(self._forgotten):
            return segment
        block = self._living(segment)
        return segment if block is None else Segment(block)


def _alike(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield the blocks, none empty, in runs with compatible columns."""
    run: list[Block] = []
    common = pa.schema([])
    for block in blocks:
        merged = common_schema(common, block.schema) if run else block.schema
        if merged is None:
            yield run
            run, merged = [], block.schema
        run.append(block)
        common = merged
    if run:
        yield run
