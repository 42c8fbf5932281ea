"""Changes of panes in memory: partial aggregates that arrived, keys that departed, panes that were dropped.

A delta adds partial aggregates to the rows of older files, so a change needs no look-up of the key's row. Invariant: `came` has
nothing of a key from before it departed, nor of a pane from before it was dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import PANE, PartialAggregates
from ..batch import Batch
from ..keys.encoding import key_hashes
from ..protocol.routing import Move
from ..snapshots.chain import replacing
from ..snapshots.changes import Changes

PaneLog = tuple[PartialAggregates, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """The key columns `keys` that departed from pane `start` (microseconds), selected by `move`."""

    start: int
    keys: Sequence[pa.Array]
    move: Move


@dataclass(frozen=True, slots=True)
class PaneChanges(Changes):
    """The changes of panes: `came`, partial aggregates by pane; `left`; `forgotten`, panes.

    `key_groups` and `operator` are needed to hash keys.
    """

    came: Mapping[int, PaneLog]
    left: Sequence[Left]
    forgotten: frozenset[int]
    key_groups: int
    operator: str

    def __len__(self) -> int:
        rows = sum(len(partial) for log in self.came.values() for partial in log)
        return rows + sum(len(left.keys[0]) for left in self.left) + len(self.forgotten)

    def behind(self, earlier: PaneChanges) -> PaneChanges:
        came = {start: log for start, log in earlier.came.items() if start not in self.forgotten}
        for left in self.left:
            if left.start in came:
                came[left.start] = self._without(came[left.start], left.move)
        for start, log in self.came.items():
            came[start] = (*came.get(start, ()), *log)
        both = [*earlier.left, *self.left]
        return PaneChanges(came, both, earlier.forgotten | self.forgotten, self.key_groups, self.operator)

    def _without(self, log: PaneLog, move: Move) -> PaneLog:
        return tuple(split(partial, move, self.key_groups, self.operator)[1] for partial in log)


def panes_gone(panes: Collection[int]) -> Batch:
    """Return a chunk that deletes these panes from older files, with a row for each."""
    return Batch(replacing(pa.record_batch({PANE: sorted(panes)}), [PANE]))


def split(partial: PartialAggregates, move: Move, key_groups: int, operator: str) -> tuple[PartialAggregates, PartialAggregates]:
    """Return the partial aggregates that `move` selects, and the rest."""
    leaving: np.ndarray[Any, np.dtype[np.bool_]] = move.selects(key_hashes(partial.keys, operator), key_groups)
    return partial.take(np.flatnonzero(leaving)), partial.take(np.flatnonzero(~leaving))
