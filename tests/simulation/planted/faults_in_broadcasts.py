"""Faults in broadcast streams: copies that are not given, not saved, or go back. Each breaks a core in a few lines."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.engine.keyed_state.kinds.broadcast_copy import BroadcastCopy
from evenflow.engine.keyed_state.kinds.broadcast_records import BroadcastRecords, CopyChanges
from evenflow.engine.operators.rows.broadcast import Broadcast
from evenflow.engine.plan import planner
from evenflow.engine.task.core import TaskCore

Patch = pytest.MonkeyPatch


def workers_that_join_get_no_copy(patch: Patch) -> None:
    patch.setattr(BroadcastRecords, "copies", lambda self: ())
    apply = BroadcastCopy.apply

    def applied(self: Any, tagged: Any) -> None:
        self.here = True
        apply(self, tagged)

    patch.setattr(BroadcastCopy, "apply", applied)


def broadcast_rows_do_not_wait_behind_markers(patch: Patch) -> None:
    receive = TaskCore._receive_batch

    def at_once(self: Any, channel: Any, came: Any) -> None:
        receive(self, channel, came)
        behind, self._behind = self._behind, []
        for batch in behind:
            self.chain.process(0, batch)

    patch.setattr(TaskCore, "_receive_batch", at_once)


def changes_of_the_copy_are_not_saved(patch: Patch) -> None:
    changes = BroadcastRecords.changes

    def without(self: Any) -> Any:
        found = changes(self)
        return found and CopyChanges(found.records, None)

    patch.setattr(BroadcastRecords, "changes", without)


def deleted_rows_come_back_with_a_checkpoint(patch: Patch) -> None:
    patch.setattr(BroadcastCopy, "replaced", lambda self: iter(self.chunks()))


def several_workers_broadcast(patch: Patch) -> None:
    """Let the workers of the source send to all, so that there is no common order."""
    patch.setattr(planner, "_may_chain", lambda upstream, node: len(node.inputs) == 1 and node.keys is None)
    patch.setattr(Broadcast, "stays_with_input", True)


def versions_do_not_count(patch: Patch) -> None:
    begin = BroadcastCopy.__init__
    patch.setattr(BroadcastCopy, "__init__", lambda self, keys, operator, version=None: begin(self, keys, operator))
