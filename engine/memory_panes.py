"""Panes in memory: each a log of summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .aggregates.binding import Binding
from .batch import Batch
from .keys import key_hashes
from .operators.base import Context
from .operators.keyed import Departing
from .pane import Pane
from .panes import Panes, distinct
from .routing import Move
from .summary import Carry, Summariser, Summary

CHUNK = 32_768
"""Keys of a chunk of a snapshot."""


class MemoryPanes(Panes):
    """What a summary holds is never changed in place."""

    def __init__(self, summariser: Summariser, context: Context) -> None:
        self._summariser, self._context = summariser, context
        self._panes: dict[int, Pane] = {}

    def starts(self) -> Collection[int]:
        return self._panes.keys()

    def append(self, summary: Summary, panes: npt.NDArray[np.int64]) -> None:
        starts = distinct(panes)
        for start in starts:
            rows = summary if len(starts) == 1 else summary.take(np.flatnonzero(panes == start))
            self._panes.setdefault(start, Pane()).append(rows, self._summariser)

    def window(self, panes: Sequence[int]) -> Iterator[Summary]:
        if len(panes) == 1:
            yield self._panes[panes[0]].combined(self._summariser)
        else:
            yield self._summariser.combine([summary for pane in panes for summary in self._panes[pane].log])

    def drop(self, panes: Sequence[int]) -> None:
        for pane in panes:
            del self._panes[pane]

    def install(self, state: Batch) -> None:
        summary, panes = self._summariser.from_batch(state)
        if panes is not None:
            self.append(summary, panes)

    def snapshot(self) -> Iterator[Batch]:
        return self._chunks([(start, list(pane.log)) for start, pane in self._panes.items()], self._summariser.binding)

    def depart(self, move: Move) -> Departing:
        left: list[tuple[int, Summary]] = []
        for start, pane in list(self._panes.items()):
            summary = pane.combined(self._summariser)
            leaving = move.selects(key_hashes(summary.keys, self._context.name), self._context.key_groups)
            if leaving.any():
                left.append((start, summary.take(np.flatnonzero(leaving))))
                pane.replace(summary.take(np.flatnonzero(~leaving)))
                if not len(pane):
                    del self._panes[start]
        return _DepartingPanes(self._summariser, left)

    def carry(self, carry: Carry) -> None:
        for pane in self._panes.values():
            pane.carry(carry)

    @property
    def nbytes(self) -> int:
        return sum(pane.nbytes(self._summariser) for pane in self._panes.values())

    def _chunks(self, panes: Sequence[tuple[int, Sequence[Summary]]], binding: Binding | None) -> Iterator[Batch]:
        for start, log in panes:
            for summary in log:
                for first in range(0, len(summary), CHUNK):
                    piece = summary.take(np.arange(first, min(first + CHUNK, len(summary))))
                    yield self._summariser.to_batch(piece, None, np.full(len(piece), start, np.int64), binding)


class _DepartingPanes(Departing):
    """The leaving keys' part of every pane."""

    def __init__(self, summariser: Summariser, left: list[tuple[int, Summary]]) -> None:
        self._summariser, self._binding, self._left = summariser, summariser.binding, left

    def some(self, keys: int) -> Batch | None:
        if not self._left:
            return None
        start, summary = self._left.pop()
        if len(summary) > keys:
            self._left.append((start, summary.take(np.arange(keys, len(summary)))))
            summary = summary.take(np.arange(keys))
        return self._summariser.to_batch(summary, None, np.full(len(summary), start, np.int64), self._binding)

    def of(self, columns: Sequence[pa.Array]) -> Batch | None:
        return None
