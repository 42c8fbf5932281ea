"""The state of windows in memory: a log of partial aggregates for each pane."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from ...aggregates.binding import Binding
from ...aggregates.partial_aggregates import PANE, Carry, PartialAggregates, PartialAggregator
from ...batch import Batch
from ...context import Context
from ...protocol.routing import Move
from ...snapshots.chain import replacing
from ...snapshots.changes import Changes
from ..base import StateTransfer
from ..pane_changes import Left, PaneChanges, panes_gone, split
from ..panes import Panes
from .pane import Pane

CHUNK = 32_768
"""The keys of a chunk of a snapshot."""


class MemoryPanes(Panes):
    """Panes in memory. The pieces of a log are never changed in place."""

    def __init__(self, aggregator: PartialAggregator, context: Context) -> None:
        self.aggregator, self._context = aggregator, context
        aggregator.when_rebound(self._carry_over)
        self._panes: dict[int, Pane] = {}
        self._noting = False
        self._left: list[Left] = []
        self._forgotten: set[int] = set()

    def starts(self) -> Collection[int]:
        return self._panes.keys()

    def _append(self, pane: int, partial: PartialAggregates) -> None:
        self._panes.setdefault(pane, Pane()).append(partial, self.aggregator)

    def window(self, panes: Sequence[int]) -> Iterator[PartialAggregates]:
        if len(panes) == 1:
            yield self._panes[panes[0]].combined(self.aggregator)
        else:
            yield self.aggregator.combine([partial for pane in panes for partial in self._panes[pane].log])

    def of_keys(self, panes: Sequence[int], keys: Sequence[pa.Array]) -> Iterator[PartialAggregates]:
        yield self.aggregator.combine([self.aggregator.of_keys(partial, keys) for pane in panes for partial in self._panes[pane].log])

    def drop(self, panes: Sequence[int]) -> None:
        for start in panes:
            if self._panes.pop(start).settled:
                self._forgotten.add(start)

    def snapshot(self) -> Iterator[Batch]:
        return self._chunks([(start, list(pane.log)) for start, pane in self._panes.items()], self.aggregator.binding)

    def depart(self, move: Move) -> StateTransfer:
        """Cut the keys out at once, so that the remaining windows can continue."""
        left: list[tuple[int, PartialAggregates]] = []
        for start, pane in list(self._panes.items()):
            settled, fresh = pane.cut_out(lambda partial: split(partial, move, *self._hashing), self.aggregator)
            if settled is not None:
                self._left.append(Left(start, settled.keys, move))
            left += [(start, partial) for partial in (settled, fresh) if partial is not None]
            if not len(pane):
                del self._panes[start]
        return _PaneTransfer(self.aggregator, left)

    def changes(self) -> Changes | None:
        came = {start: pane.settle(self.aggregator) for start, pane in self._panes.items()}
        changes = PaneChanges(came, self._left, frozenset(self._forgotten), *self._hashing)
        known, self._noting = self._noting, True
        self._left, self._forgotten = [], set()
        return changes if known else None

    def delta(self, changes: Changes) -> Iterator[Batch]:
        assert isinstance(changes, PaneChanges)
        return chain(self._gone(changes), self._chunks(list(changes.came.items()), self.aggregator.binding))

    def _carry_over(self, carry: Carry) -> None:
        """Convert to a new binding, and drop the noted changes, which have the previous one."""
        self._noting = False
        for pane in self._panes.values():
            pane.carry(carry)

    @property
    def nbytes(self) -> int:
        return sum(pane.nbytes(self.aggregator) for pane in self._panes.values())

    @property
    def _hashing(self) -> tuple[int, str]:
        return self._context.key_groups, self._context.name

    def _gone(self, changes: PaneChanges) -> Iterator[Batch]:
        if changes.forgotten:
            yield panes_gone(changes.forgotten)
        names = [*self.aggregator.keys, PANE]
        for left in changes.left:
            panes = pa.array(np.full(len(left.keys[0]), left.start, np.int64))
            yield Batch(replacing(pa.RecordBatch.from_arrays([*left.keys, panes], names=names), names))

    def _chunks(self, panes: Sequence[tuple[int, Sequence[PartialAggregates]]], binding: Binding | None) -> Iterator[Batch]:
        for start, log in panes:
            for partial in log:
                for first in range(0, len(partial), CHUNK):
                    piece = partial.take(np.arange(first, min(first + CHUNK, len(partial))))
                    yield self.aggregator.to_batch(piece, None, np.full(len(piece), start, np.int64), binding)


class _PaneTransfer(StateTransfer):
    """A transfer of the leaving keys' part of every pane."""

    def __init__(self, aggregator: PartialAggregator, left: list[tuple[int, PartialAggregates]]) -> None:
        self._aggregator, self._binding, self._left = aggregator, aggregator.binding, left

    def next_chunk(self, keys: int) -> Batch | None:
        if not self._left:
            return None
        start, partial = self._left.pop()
        if len(partial) > keys:
            self._left.append((start, partial.take(np.arange(keys, len(partial)))))
            partial = partial.take(np.arange(keys))
        return self._aggregator.to_batch(partial, None, np.full(len(partial), start, np.int64), self._binding)

    def fetch(self, columns: Sequence[pa.Array]) -> Sequence[Batch]:
        return ()
