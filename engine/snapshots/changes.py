"""The changes of an operator's keyed state since an earlier checkpoint: the content of an incremental checkpoint.

Invariant: state that is not among the changes has not changed; state that is among them may be unchanged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ...state.slots import Mask, Slots


class Changes(ABC):
    """The changes of one operator's state; only that operator understands them."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the approximate number of their rows in a file."""

    @abstractmethod
    def behind(self, earlier: Self) -> Self:
        """Return the union with the `earlier` changes, which ended where these begin."""


@dataclass(frozen=True, slots=True)
class KeyChanges(Changes):
    """The changed keys, as the operator's backend notes them, and dropped panes, whose present rows arrived later."""

    keys: set[Any]
    forgotten: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.keys) + len(self.forgotten)

    def behind(self, earlier: KeyChanges) -> KeyChanges:
        return KeyChanges(self.keys | earlier.keys, self.forgotten | earlier.forgotten)


@dataclass(frozen=True, slots=True)
class SlotChanges(Changes):
    """The slots whose rows were written, and the removed keys as pieces of the key columns."""

    those: Mask
    removed: Sequence[Sequence[pa.Array]]

    @classmethod
    def of(cls, slots: Slots) -> SlotChanges | None:
        """Return the changes since the last call, None if they are not known; start to note changes."""
        noted = slots.changes()
        return None if noted is None else cls(*noted)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.those)) + sum(len(columns[0]) for columns in self.removed)

    def behind(self, earlier: SlotChanges) -> SlotChanges:
        """Return the union; a slot that was freed and reused is among the later changes."""
        both = self.those.copy()
        both[: len(earlier.those)] |= earlier.those
        return SlotChanges(both, [*earlier.removed, *self.removed])
