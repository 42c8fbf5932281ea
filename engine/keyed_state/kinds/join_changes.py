"""Changes of the rows of a join: rows that arrived, keys that departed. Rows forgotten by time need no note: they are due.

Invariant: the rows that arrived have nothing of a key from before it departed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...joins.block import Block
from ...joins.sides import Side
from ...protocol.routing import Move
from ...snapshots.changes import Changes

Came = tuple[Side, Block]


@dataclass(frozen=True, slots=True)
class KeysLeft:
    """The key columns `keys` of rows that departed, selected by `move`."""

    keys: Sequence[pa.Array]
    move: Move


@dataclass(frozen=True, slots=True)
class JoinChanges(Changes):
    """The changes of the rows of a join. `key_groups` is needed to find rows of keys that departed."""

    came: tuple[Came, ...]
    left: tuple[KeysLeft, ...]
    key_groups: int

    def __len__(self) -> int:
        return sum(len(block) for _, block in self.came) + sum(len(left.keys[0]) for left in self.left)

    def behind(self, earlier: JoinChanges) -> JoinChanges:
        came = earlier.came
        for left in self.left:
            came = staying(came, left.move, self.key_groups)
        return JoinChanges((*came, *self.came), (*earlier.left, *self.left), self.key_groups)


def staying(came: Sequence[Came], move: Move, key_groups: int) -> tuple[Came, ...]:
    """Return the arrived rows that `move` doesn't select."""
    left = ((side, block, ~move.selects(block.hashes, key_groups)) for side, block in came)
    return tuple((side, block.filter(mask)) for side, block, mask in left if mask.any())
