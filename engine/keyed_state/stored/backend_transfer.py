"""State transfer out of a backend.

Keys are looked up a group at a time, so that no batch waits for a list of all keys. If the backend can hand over complete
groups, only their keys' names are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....state.backends.base import StateBackend
from ...batch import Batch
from ...context import Context
from ...protocol.routing import Move
from ..base import StateTransfer


class InBackend(Protocol):
    """State in a backend, and its conversion to batches."""

    context: Context
    backend: StateBackend

    def backend_groups(self, key_groups: Sequence[int]) -> list[int]:
        """Return the backend's groups that may have keys of these key groups."""

    def places(self, columns: Sequence[pa.Array]) -> tuple[list[int], list[Any]]:
        """Return the groups and keys of the backend for key columns."""

    def hashes(self, keys: Sequence[Any]) -> npt.NDArray[np.uint64]:
        """Return the hashes of keys of the backend."""

    def take(self, groups: Sequence[int], keys: Sequence[Any]) -> Batch | None:
        """Remove and return the state of the keys that are still here."""

    def named(self, keys: Sequence[Any]) -> Batch:
        """Return keys without their state, which the new owner finds in the backend."""

    def introduced(self, keys: Sequence[Any]) -> Batch | None:
        """Return the message, if any, that the new owner needs before it reads the state of these keys."""


class BackendTransfer(StateTransfer):
    """A transfer of state chunk by chunk. Groups that are handed over completely have departed at once."""

    whole: frozenset[int]
    """The key groups that are handed over completely."""

    def __init__(self, states: InBackend, move: Move) -> None:
        self._states, self.move = states, move
        self.over = False
        key_groups = states.context.key_groups
        partial = {key % key_groups for key in (*move.keys, *move.staying)}
        self.whole = frozenset(move.groups) - partial
        self._whole = frozenset(states.backend_groups(sorted(self.whole)))
        self._passed = states.backend.pass_on(sorted(self._whole), move.target)
        mixed = states.backend_groups(sorted(partial))
        self._groups = sorted(mixed if self._passed is not None else [*mixed, *self._whole], reverse=True)
        self._left: tuple[list[int], list[Any]] = [], []
        """Groups and keys that come next, in parallel."""

    def next_chunk(self, keys: int) -> Batch | None:
        batch = self.next_chunk_here(keys)
        if batch is None:
            batch = self._named(keys)
            self.over = batch is None
        return batch

    def next_chunk_here(self, keys: int) -> Batch | None:
        """Return what `next_chunk` does, for state that must be read and sent."""
        groups, names = self._left
        while names or self._groups:
            while len(names) < keys and self._groups:
                group = self._groups.pop()
                found = self._keys_of(group)
                names += found
                groups += [group] * len(found)
            batch = self._states.take(groups[:keys], names[:keys])
            del groups[:keys], names[:keys]
            if batch is not None:
                return batch
        return None

    @property
    def passes(self) -> bool:
        """True if complete groups were handed over at once."""
        return self._passed is not None

    def fetch(self, columns: Sequence[pa.Array]) -> Sequence[Batch]:
        groups, keys = self._states.places(columns)
        batch = self._states.take(groups, keys)
        if batch is None and self.passes:
            batch = self._states.introduced(keys)
        return () if batch is None else (batch,)

    def _named(self, keys: int) -> Batch | None:
        named: list[Any] = []
        while self._passed is not None and len(named) < keys:
            group = next(self._passed, None)
            if group is None:
                break
            named += group
        return self._states.named(named) if named else None

    def _keys_of(self, group: int) -> list[Any]:
        """Return the keys of a group that move."""
        states = self._states
        keys = states.backend.listed(group)
        if keys and group not in self._whole:
            selected = self.move.selects(states.hashes(keys), states.context.key_groups)
            keys = [keys[place] for place in np.flatnonzero(selected).tolist()]
        return keys
