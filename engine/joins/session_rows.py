"""Sessions of two streams: the rows of both sides of a key that are at most `gap` apart, one after the other.

A row is late if its time is before the watermark. So no row that is kept can join a session that has ended, and rows of ended
sessions may stay for a while. Sessions are found by the hashes of keys: two keys of one hash would wait for each other, and are
separated at the end. In a join, where a null equals nothing, a row with a null in its key is a session of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..batch import Times
from .block import Block, Hashes, RowIndices
from .matching import without_nulls
from .segment import expanded
from .sides import Side
from .window_rows import Complete, Groups, Keys, Logs, WindowRows, key_codes

FEW = 4_096
"""The number of rows of ended sessions below which they are not removed."""


class SessionRows(WindowRows):
    """Session windows over both sides. `keys`: the names of the key columns of each side; `nulls_meet`: nulls in keys are equal.

    The due time of a row is the end of the session if no other row follows.
    """

    def __init__(self, gap: int, keys: Keys, operator: str, *, nulls_meet: bool) -> None:
        self._gap, self._keys, self._operator, self._nulls_meet = gap, keys, operator, nulls_meet
        self._ended = 0
        """Rows of ended sessions that may still be in the logs."""

    def due(self, times: Times) -> Times:
        return times + self._gap

    def late(self, times: Times, watermark: int) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = times < watermark
        return mask

    def complete(self, logs: Logs, after: int, until: int) -> Iterator[Complete]:
        yield from self._alone(logs, after, until)
        hashes, lasts = self._lasts(logs, after, until)
        if not len(hashes):
            return
        found = {
            side: [(segment.block, *_before(segment.ranges(hashes, None, lasts))) for segment in log.segments] for side, log in logs.items()
        }
        parts = [(side, block, *self._met(side, block, places, of)) for side, blocks in found.items() for block, of, places in blocks]
        parts = [part for part in parts if len(part[2])]
        times = np.concatenate([block.times[places] for _, block, places, _ in parts])
        of = np.concatenate([of for *_, of in parts])
        mine, begin, whole = _sessions(of, times, self._gap)[1] == lasts[of], 0, list[tuple[Side, Block]]()
        for side, block, places, _ in parts:
            mask = mine[begin : begin + len(places)]
            begin += len(places)
            whole += [(side, piece) for piece in block.take(places[mask]).pieces()]
        self._ended += int(np.count_nonzero(mine))
        yield self._by_key(whole)

    def forget(self, logs: Logs, watermark: int) -> None:
        """Remove the rows of ended sessions once they may be half of all."""
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

    def _alone(self, logs: Logs, after: int, until: int) -> Iterator[Complete]:
        """Yield the rows whose end is in [after, until) and whose keys equal none."""
        for side, log in logs.items():
            for segment in log.segments if not self._nulls_meet else ():
                valid = without_nulls(segment.block, self._keys[side])
                if valid is None or segment.last_due < after:
                    continue
                due = segment.block.due
                for block in segment.block.take(np.flatnonzero(~valid & (due >= after) & (due < until))).pieces():
                    self._ended += len(block)
                    ends = block.times + self._gap
                    yield Complete(block.times, ends, ends, {**dict.fromkeys(self._keys, ()), side: [(block, np.arange(len(block)))]})

    def _met(self, side: Side, block: Block, places: RowIndices, of: RowIndices) -> tuple[RowIndices, RowIndices]:
        """Return the indices and numbers, without rows whose keys equal none."""
        valid = None if self._nulls_meet else without_nulls(block, self._keys[side])
        return (places, of) if valid is None else (places[valid[places]], of[valid[places]])

    def _lasts(self, logs: Logs, after: int, until: int) -> tuple[Hashes, Times]:
        """Return the hash and the last time of each session whose end is in [after, until)."""
        segments = [segment for log in logs.values() for segment in log.segments]
        segments = [segment for log in logs.values() for segment in log.segments]
        there, due = list[Block](), list[npt.NDArray[np.bool_]]()
        for side, log in logs.items():
            for segment in log.segments:
                if segment.last_due >= after:
                    mask = (segment.block.due >= after) & (segment.block.due < until)
                    valid = None if self._nulls_meet else without_nulls(segment.block, self._keys[side])
                    there.append(segment.block)
                    due.append(mask if valid is None else mask & valid)
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

    def _by_key(self, parts: Sequence[tuple[Side, Block]]) -> Complete:
        """Return the sessions of complete keys, separated if keys share a hash."""
        codes, _ = key_codes(parts, self._keys, self._operator)
        firsts, lasts = _sessions(codes, np.concatenate([block.times for _, block in parts]), self._gap)
        sessions, numbers = np.unique(np.stack([codes, firsts, lasts]), axis=1, return_inverse=True)
        numbers, begin, sides = numbers.reshape(-1), 0, {side: list[tuple[Block, Groups]]() for side in self._keys}
        for side, block in parts:
            sides[side].append((block, numbers[begin : begin + len(block)]))
            begin += len(block)
        ends = sessions[2] + self._gap
        return Complete(sessions[1], ends, ends, sides)


def _before(ranges: tuple[RowIndices, RowIndices]) -> tuple[RowIndices, RowIndices]:
    """Return the number of the range, and the index, of every candidate."""
    found = expanded(*ranges)
    return found.probed, found.stored


def _sessions(codes: npt.NDArray[np.integer], times: Times, gap: int) -> tuple[Times, Times]:
    """Return the first and the last time of each row's session, among the rows of its code."""
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
