"""The rows of a checkpoint's state that belong to a worker, by the routing tables of the checkpoint and of now.

Invariant: one worker takes each row, except copied rows of a key that is split now, which all its workers take. If a key was
split in the checkpoint, each of its workers saved the copied rows; those of its home count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .routing import Hashes, Mask, RoutingTable
from .split_route import Dealt


@dataclass(frozen=True, slots=True)
class RestoredKeys:
    """The operator's routing tables: `before`, of the checkpoint, None if unknown, and `now`.

    `same`: nothing has changed, so every worker takes what it saved, and dealt rows stay with their worker; otherwise they go to
    the key's home.
    """

    now: RoutingTable
    before: RoutingTable | None = None
    same: bool = False

    def of(self, worker: int, saved_by: int, hashes: Hashes, side: Dealt | None) -> Mask:
        """Return a mask of the rows that belong to `worker`, shape (rows,).

        `hashes`: the rows' keys; `saved_by`: the worker that saved them; `side`: their side of a join.
        """
        mine: Mask = self.now.owners(hashes) == worker
        for key, split in self.now.splits.items():
            if worker in split.others and (self.same or side != split.dealt):
                mine |= hashes == np.uint64(key)
        if not self.same and self.before is not None:
            for key, split in self.before.splits.items():
                if saved_by != split.home and side != split.dealt:
                    mine &= hashes != np.uint64(key)
        return mine
