"""Tables of saved state: a row for each key of an operator, with the values that `KeyedInstance.read` gives for single keys.

A reader holds what it needs to know of an operator and none of the functions that the operator calls with rows, so that it can be
sent to a process that reads a checkpoint. Invariant: chunks are installed as a worker that is restored installs them, so types widen
and parts are matched in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..batch import Batch
from ..context import Context
from ..keyed_state.base import KeyedState
from ..keys.load import KeyLoad
from ..state_description import PartsChange

GROUPS = 1
"""The key groups of state that no worker owns."""


@dataclass(frozen=True, slots=True)
class SavedPart:
    """The saved state of one worker, whose event time was `watermark` (microseconds)."""

    watermark: int
    chunks: Iterable[Batch]


class StateReader(ABC):
    """Makes a table of the saved state of one operator."""

    @abstractmethod
    def table(self, operator: str, parts: Iterable[SavedPart], change: PartsChange | None) -> pa.Table:
        """Return a row for each key with a value, the key columns in front. `change`: the parts of the operator differ from the saved ones.

        Raises RecordError, naming `operator`, if it is not state of this kind.
        """


def reading_context(operator: str) -> Context:
    """Return the context of an instance that only holds saved state, in memory."""
    return Context(operator, 0, 1, GROUPS, KeyLoad(GROUPS, enabled=False))


def install(state: KeyedState, operator: str, part: SavedPart, change: PartsChange | None) -> None:
    """Add a worker's chunks to a state."""
    for chunk in part.chunks:
        state.restore(chunk, operator, change)


def empty(names: Sequence[str]) -> pa.Table:
    """Return a table without rows, whose columns have no type yet."""
    return pa.table({name: pa.nulls(0) for name in names})
