"""Faults in the state that a restored worker installs when records need it."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.engine.keyed_state.pending import PendingState
from evenflow.engine.snapshots.saved_rows import SavedRows
from evenflow.engine.task.operator_chain import OperatorChain
from evenflow.engine.task.saving import Snapshots

Patch = pytest.MonkeyPatch


def record_overtakes_the_state_of_its_key(patch: Patch) -> None:
    patch.setattr(OperatorChain, "_prepare", lambda self, keyed, rows: None)


def state_is_installed_twice(patch: Patch) -> None:
    take = SavedRows.take
    patch.setattr(SavedRows, "take", lambda self, rows: [piece for piece in take(self, rows) for _ in range(2)])


def full_snapshot_lacks_the_state_that_waits(patch: Patch) -> None:
    begin = Snapshots.begin

    def without(self: Any, *given: Any) -> Any:
        pending, self._pending = self._pending, PendingState(self._state, "nothing")
        saving = begin(self, *given)
        self._pending = pending
        return saving

    patch.setattr(Snapshots, "begin", without)


def move_leaves_without_the_state_that_waits(patch: Patch) -> None:
    patch.setattr(PendingState, "leave", lambda self, move, key_groups: None)


def older_state_of_a_key_is_restored_too(patch: Patch) -> None:
    add = PendingState.add
    patch.setattr(PendingState, "add", lambda self, chunk, hashes, own=None: add(self, chunk, hashes))


def row_is_skipped(patch: Patch) -> None:
    install = PendingState._install

    def without_last(self: Any, rows: Any) -> None:
        if len(rows) > 1:
            self.left -= 1
            self._waiting[rows[-1]] = False  # it counts as installed
            rows = rows[:-1]
        install(self, rows)

    patch.setattr(PendingState, "_install", without_last)


def installing_forgets_the_changes_of_the_state(patch: Patch) -> None:
    install = PendingState._install

    def forgetting(self: Any, rows: Any) -> None:
        install(self, rows)
        self._state.changes()

    patch.setattr(PendingState, "_install", forgetting)
