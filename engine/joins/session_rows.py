"""Sessions of two streams: the rows of both sides of a key that are at most `gap` apart, one after the other.

A row is late if its time is before the watermark. So no row that is kept can join a session that has ended, and rows of ended sessions may
stay for a while. Sessions are found by the hashes of keys: two keys of one hash would wait for each other, and are told apart at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..batch import Times
from .block import Block, Hashes, Places
from .segment import expanded
from .window_rows import Complete, Groups, Logs, WindowRows

FEW = 4_096
"""Fewer rows of ended sessions than this are not removed."""


class SessionRows(WindowRows):
    """The due time of a row is the end of the session, if no other row follows."""

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._ended = 0
        """Rows of ended sessions that may still be in the logs."""

    def due(self, times: Times) -> Times:
        return times + self._gap

    def late(self, times: Times, watermark: int) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = times < watermark
        return mask

    def complete(self, logs: Logs, after: int, until: int) -> Iterator[Complete]:
        hashes, lasts = self._lasts(logs, after, until)
        if not len(hashes):
            return
        found = {
            side: [(segment.block, *_before(segment.ranges(hashes, None, lasts))) for segment in log.segments] for side, log in logs.items()
        }
        parts = [(side, block, places, of) for side, blocks in found.items() for block, of, places in blocks if len(places)]
        times = np.concatenate([block.times[places] for _, block, places, _ in parts])
        of = np.concatenate([of for *_, of in parts])
        mine, starts = self._in_last_session(of, times, lasts)
        ends, sides, begin = lasts + self._gap, {side: list[tuple[Block, Groups]]() for side in logs}, 0
        for side, block, places, groups in parts:
            mask = mine[begin : begin + len(places)]
            begin += len(places)
            if mask.any():
                rows = block.take(places[mask])
                sides[side] += [(piece, groups[mask][first : first + len(piece)]) for first, piece in _numbered(rows)]
        self._ended += int(np.count_nonzero(mine))
        yield Complete(starts, ends, ends, sides)

    def forget(self, logs: Logs, watermark: int) -> None:
        """Removes the rows of ended sessions once they may be half of all."""
        if self._ended < FEW or 2 * self._ended < sum(map(len, logs.values())):
            return
        self._ended = 0
        blocks = [block for log in logs.values() for block in log.blocks()]
        hashes, times = np.concatenate([block.hashes for block in blocks]), np.concatenate([block.times for block in blocks])
        _, codes = np.unique(hashes, return_inverse=True)
        _, lasts = _sessions(codes, times, self._gap)
        live = lasts + self._gap >= watermark
        gone, begin = dict[int, npt.NDArray[np.bool_]](), 0
        for block in blocks:
            gone[id(block)] = ~live[begin : begin + len(block)]
            begin += len(block)
        for log in logs.values():
            for block in log.cut_out(lambda block: gone[id(block)]):
                block.held.forget(np.ones(len(block), np.bool_))

    def _lasts(self, logs: Logs, after: int, until: int) -> tuple[Hashes, Times]:
        """The hash, and the last time, of each session whose end is in [after, until)."""
        segments = [segment for log in logs.values() for segment in log.segments]
        due = [(segment.block.due >= after) & (segment.block.due < until) for segment in segments if segment.last_due >= after]
        there = [segment.block for segment in segments if segment.last_due >= after]
        hashes = np.concatenate([np.zeros(0, np.uint64), *(block.hashes[mask] for block, mask in zip(there, due, strict=True))])
        times = np.concatenate([np.zeros(0, np.int64), *(block.times[mask] for block, mask in zip(there, due, strict=True))])
        order = np.lexsort((times, hashes))
        hashes, times = hashes[order], times[order]
        once = np.ones(len(hashes), np.bool_)
        once[1:] = (hashes[1:] != hashes[:-1]) | (times[1:] != times[:-1])
        hashes, times = hashes[once], times[once]
        followed = np.zeros(len(hashes), np.bool_)
        for segment in segments:
            start, end = segment.ranges(hashes, times + 1, times + self._gap)
            followed |= end > start
        return hashes[~followed], times[~followed]

    def _in_last_session(self, of: Groups, times: Times, lasts: Times) -> tuple[npt.NDArray[np.bool_], Times]:
        """Which rows are in the session that ends with their group's last time; and where these sessions begin."""
        firsts, ends = _sessions(of, times, self._gap)
        mine = ends == lasts[of]
        starts = np.empty(len(lasts), np.int64)
        starts[of[mine]] = firsts[mine]
        return mine, starts


def _before(ranges: tuple[Places, Places]) -> tuple[Places, Places]:
    """The number of the range, and the place, of every candidate."""
    found = expanded(*ranges)
    return found.probed, found.stored


def _numbered(block: Block) -> Iterator[tuple[int, Block]]:
    """The block's pieces in memory, each with the place of its first row."""
    first = 0
    for piece in block.pieces():
        yield first, piece
        first += len(piece)


def _sessions(codes: npt.NDArray[np.integer], times: Times, gap: int) -> tuple[Times, Times]:
    """The first and the last time of each row's session, among the rows of its code."""
    order = np.lexsort((times, codes))
    code, time = codes[order], times[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (code[1:] != code[:-1]) | (time[1:] - time[:-1] > gap)
    number = np.cumsum(begins) - 1
    places = np.flatnonzero(begins)
    firsts, lasts = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    firsts[order] = time[places][number]
    lasts[order] = time[np.append(places[1:], len(order)) - 1][number]
    return firsts, lasts
