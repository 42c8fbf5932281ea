"""A table of partial aggregates with a row per key: what the state of running aggregates is, wherever it lies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from .batch import Batch
from .changes import Changes
from .operators.keyed import Departing
from .routing import Move
from .summary import Carry, Summary


class Table(ABC):
    """Used by one thread."""

    passes_on = False
    """Whether state may be the new owner's without having been sent: then no record is processed before its owner knows that."""

    @abstractmethod
    def merge(self, summary: Summary) -> Summary:
        """Add a summary with every key once; returns the new rows of these keys."""

    @abstractmethod
    def install(self, state: Batch) -> None:
        """Take what another worker's `depart` gave, or a chunk of a snapshot."""

    @abstractmethod
    def everything(self) -> Iterator[Summary]:
        """All keys, in as many pieces as it takes not to hold them all at once. Nothing is merged meanwhile."""

    @abstractmethod
    def frozen(self, chunk: int) -> Iterator[Summary]:
        """All keys as they are now, about `chunk` at a time; the call does no more than it must, the iteration the rest."""

    @abstractmethod
    def changes(self) -> Changes | None:
        """What has changed since the last call, or None if that is not known; from now on it is noted."""

    @abstractmethod
    def delta(self, changes: Changes, chunk: int) -> Iterator[Batch]:
        """What is among the changes, as it is now, about `chunk` keys at a time, in chunks that replace what was."""

    @abstractmethod
    def depart(self, move: Move) -> Departing:
        """Let go of the keys that `move` selects."""

    @abstractmethod
    def carry(self, carry: Carry) -> None:
        """Types have come late or have widened: from now on all rows are of the new binding."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Estimate of its bytes."""

    def close(self) -> None:
        """Let go of files and connections."""
