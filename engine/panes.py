"""The partial aggregates of the panes that windows still need: what the state of windows is, wherever it lies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from .batch import Batch
from .changes import Changes
from .operators.keyed import Departing
from .routing import Move
from .summary import Carry, Summary


class Panes(ABC):
    """Used by one thread. A pane is known by its start (microseconds)."""

    passes_on = False
    """Whether state may be the new owner's without having been sent: then no record is processed before its owner knows that."""

    @abstractmethod
    def starts(self) -> Collection[int]:
        """The panes that have keys."""

    def __len__(self) -> int:
        return len(self.starts())

    @abstractmethod
    def append(self, summary: Summary, panes: npt.NDArray[np.int64]) -> None:
        """Add a summary, the pane of each of its rows in `panes`; a key may be there repeatedly."""

    @abstractmethod
    def window(self, panes: Sequence[int]) -> Iterator[Summary]:
        """Everything in these panes, every key once, in as many pieces as it takes not to hold it all at once."""

    @abstractmethod
    def drop(self, panes: Sequence[int]) -> None:
        """Forget these panes."""

    @abstractmethod
    def install(self, state: Batch) -> None:
        """Take what another worker's `depart` gave, or a chunk of a snapshot."""

    @abstractmethod
    def snapshot(self) -> Iterator[Batch]:
        """All panes as they are now, in chunks that `install` takes."""

    @abstractmethod
    def changes(self) -> Changes | None:
        """What has changed since the last call, or None if that is not known; from now on it is noted."""

    @abstractmethod
    def delta(self, changes: Changes) -> Iterator[Batch]:
        """What is among the changes, as it is now, in chunks that replace what was or add to it."""

    @abstractmethod
    def depart(self, move: Move) -> Departing:
        """Let go of the keys that `move` selects. They are cut out at once, so that the windows that stay can go on."""

    @abstractmethod
    def carry(self, carry: Carry) -> None:
        """Types have come late or have widened: from now on all rows are of the new binding."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Estimate of their bytes."""

    def close(self) -> None:
        """Let go of files and connections."""


def distinct(panes: npt.NDArray[np.int64]) -> list[int]:
    """The different panes, rising; most summaries have one, and one whose rows were all late has none."""
    if not len(panes) or (panes == panes[0]).all():
        return panes[:1].tolist()  # type: ignore[no-any-return]
    return np.unique(panes).tolist()  # type: ignore[no-any-return]
