"""Which rows of a checkpoint's state belong to a worker, by the routing tables of then and now.

Invariant: one worker takes each row, but all that share a key take the copied rows of a key that is split now. Of the copied rows of a key
that was split then, which each of its workers has saved, those of its home count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .routing import Hashes, Mask, RoutingTable
from .split_route import Dealt


@dataclass(frozen=True, slots=True)
class RestoredKeys:
    """`before`, `now`: the operator's routing tables, `before` None if it is not known. `same`: nothing has changed, so every worker takes
    what it saved, and dealt rows stay where they were; otherwise they go to the key's home.
    """

    now: RoutingTable
    before: RoutingTable | None = None
    same: bool = False

    def of(self, worker: int, saved_by: int, hashes: Hashes, side: Dealt | None) -> Mask:
        """Which rows of these keys, saved by worker `saved_by` of then, belong to `worker`, shape (rows,). `side`: theirs, in a join."""
        mine: Mask = self.now.owners(hashes) == worker
        for key, split in self.now.splits.items():
            if worker in split.others and (self.same or side != split.dealt):
                mine |= hashes == np.uint64(key)
        if not self.same and self.before is not None:
            for key, split in self.before.splits.items():
                if saved_by != split.home and side != split.dealt:
                    mine &= hashes != np.uint64(key)
        return mine
