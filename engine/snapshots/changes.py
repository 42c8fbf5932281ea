"""What has changed in an operator's keyed state since a moment: what a checkpoint that goes on from an earlier one must hold.

Invariant: whatever is not among the changes is as it was then; what is among them may be as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...state.slots import Mask


class Changes(ABC):
    """Given out by an operator, and asked of the same operator only."""

    @abstractmethod
    def __len__(self) -> int:
        """About how many rows they will be in a file."""

    @abstractmethod
    def behind(self, earlier: Self) -> Self:
        """These changes and the `earlier` ones, behind which they came without a gap."""


@dataclass(frozen=True, slots=True)
class KeyChanges(Changes):
    """Keys, as the operator's backend notes them, and panes that were forgotten: what is there of those now came later."""

    keys: set[Any]
    forgotten: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.keys) + len(self.forgotten)

    def behind(self, earlier: KeyChanges) -> KeyChanges:
        return KeyChanges(self.keys | earlier.keys, self.forgotten | earlier.forgotten)


@dataclass(frozen=True, slots=True)
class SlotChanges(Changes):
    """Slots whose rows were written, and the keys that were removed."""

    those: Mask
    removed: Sequence[Any]

    def __len__(self) -> int:
        return int(np.count_nonzero(self.those)) + len(self.removed)

    def behind(self, earlier: SlotChanges) -> SlotChanges:
        """A slot that was freed and taken by another key since then is among the later ones."""
        both = self.those.copy()
        both[: len(earlier.those)] |= earlier.those
        return SlotChanges(both, [*earlier.removed, *self.removed])
