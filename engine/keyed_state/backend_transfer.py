"""Keys and what a backend has of them, on their way to another worker: looked up a group at a time, so that no batch waits for a list of
all of them. Where the backend can, whole groups change hands at once, and only their keys' names are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.backends.base import StateBackend
from ..batch import Batch
from ..operators.base import Context
from ..protocol.routing import Move
from .base import StateTransfer


class InBackend(Protocol):
    """State in a backend, as the batches in which it travels."""

    context: Context
    backend: StateBackend

    def backend_groups(self, key_groups: Sequence[int]) -> list[int]:
        """The backend's groups in which there may be keys of these key groups."""

    def places(self, columns: Sequence[pa.Array]) -> tuple[list[int], list[Any]]:
        """Key columns as groups and keys of the backend."""

    def hashes(self, keys: Sequence[Any]) -> npt.NDArray[np.uint64]:
        """The hashes of keys of the backend."""

    def take(self, groups: Sequence[int], keys: Sequence[Any]) -> Batch | None:
        """The state of those of the keys that are here, which is gone after it."""

    def named(self, keys: Sequence[Any]) -> Batch:
        """Keys without their state, which lies where the new owner finds it."""

    def introduced(self, keys: Sequence[Any]) -> Batch | None:
        """What the new owner must have been told before it reads the state of these keys, if anything."""


class BackendTransfer(StateTransfer):
    """State leaves as it is taken; what changes hands at once is nobody's here from the beginning."""

    whole: frozenset[int]
    """The key groups that leave with all of their keys."""

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
        self._left: list[tuple[int, Any]] = []

    def next_chunk(self, keys: int) -> Batch | None:
        batch = self.next_chunk_here(keys)
        if batch is None:
            batch = self._named(keys)
            self.over = batch is None
        return batch

    def next_chunk_here(self, keys: int) -> Batch | None:
        """As `next_chunk`, of what must be read and sent."""
        while self._left or self._groups:
            while len(self._left) < keys and self._groups:
                self._left += self._keys_of(self._groups.pop())
            taken, self._left = self._left[:keys], self._left[keys:]
            batch = self._states.take([group for group, _ in taken], [key for _, key in taken])
            if batch is not None:
                return batch
        return None

    @property
    def passes(self) -> bool:
        """Whether whole groups have changed hands at once."""
        return self._passed is not None

    def fetch(self, columns: Sequence[pa.Array]) -> Batch | None:
        groups, keys = self._states.places(columns)
        batch = self._states.take(groups, keys)
        return self._states.introduced(keys) if batch is None and self.passes else batch

    def _named(self, keys: int) -> Batch | None:
        named: list[Any] = []
        while self._passed is not None and len(named) < keys:
            group = next(self._passed, None)
            if group is None:
                break
            named += group
        return self._states.named(named) if named else None

    def _keys_of(self, group: int) -> list[tuple[int, Any]]:
        """The keys of a group that move."""
        states = self._states
        keys = states.backend.keys_of(group)
        if keys and group not in self._whole:
            selected = self.move.selects(states.hashes(keys), states.context.key_groups)
            keys = [keys[place] for place in np.flatnonzero(selected).tolist()]
        return [(group, key) for key in keys]
