"""Faults in upgrades: workers that leave too early, keys that stay behind, rows out of order. Each breaks a core in a few lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenflow.engine.keyed_state.kinds.objects import StateObjects
from evenflow.engine.task.exchange import Exchange
from evenflow.engine.task.held_inputs import HeldInputs
from evenflow.engine.task.task_event_time import TaskEventTime
from evenflow.scheduler.parts import reconfiguration, upgrading
from evenflow.scheduler.record.job_record import JobRecord
from evenflow.scheduler.record.rescaling import Rescaling
from evenflow.scheduler.record.upgrade import Task
from evenflow.testing.simulation.coordinator import SimulatedCoordinator

Patch = pytest.MonkeyPatch


def rows_of_a_replaced_worker_may_come_after_its_successors(patch: Patch) -> None:
    patch.setattr(HeldInputs, "hold", lambda self, channel, behind: None)


def rows_of_a_split_may_come_before_those_that_another_worker_has_read(patch: Patch) -> None:
    patch.setattr(TaskEventTime, "awaited", property(lambda self: ()))


def old_workers_retire_with_rows_unsent(patch: Patch) -> None:
    patch.setattr(Rescaling, "_left", lambda self, finished, now: [*self.forget(), *self._done(now)])


def workers_are_replaced_while_they_own_keys(patch: Patch) -> None:
    patch.setattr(upgrading, "emptied", lambda table, worker, to: table)


def a_replaced_worker_keeps_its_channel(patch: Patch) -> None:
    """Send rows to both versions of a worker in turn: the new channel is added, and the old one stays."""
    attach = Exchange.attach
    patch.setattr(Exchange, "attach", lambda self, place, channel, out: attach(self, len(self.buffers), channel, out))


def a_replaced_worker_hands_its_number_on(patch: Patch) -> None:
    """Give a worker the number of the one whose place it takes: it is forgotten together with that one."""
    plan_replaced = reconfiguration.replaced

    def replaced(plan: Any, stage: Any, *given: Any) -> Any:
        change = plan_replaced(plan, stage, *given)
        numbers = {task.index: task.number for task in plan.tasks if task.stage == stage.name}
        tasks = [replace(task, number=numbers[task.index]) if task.name in change.joining else task for task in change.plan.tasks]
        return replace(change, plan=replace(change.plan, tasks=tuple(tasks)))

    patch.setattr(reconfiguration, "replaced", replaced)


def a_source_is_shared_out_when_its_workers_are_replaced(patch: Patch) -> None:
    """Deal the splits again, so that parts of one go to several workers."""
    take = Rescaling.take

    def taken(self: Any) -> Any:
        replaces, self.rescale = self.rescale.replaces, _replacing(self.rescale, {})
        commands = take(self)
        self.rescale = _replacing(self.rescale, replaces)
        return commands

    patch.setattr(Rescaling, "take", taken)


def checkpoints_hold_state_that_the_old_code_cannot_read(patch: Patch) -> None:
    patch.setattr(JobRecord, "holds_checkpoints", property(lambda self: False, lambda self, value: None), raising=False)


def going_back_does_not_wait_for_a_manifest_that_is_being_written(patch: Patch) -> None:
    begin = upgrading.Upgrading._begin

    def begun(self: Any, upgrade: Any, work: Any, cluster: Any) -> None:
        begin(self, upgrade, work, cluster)
        if work.task is Task.GO_BACK and self._checkpointing.saving:
            self._lifecycle.go_back()

    patch.setattr(upgrading.Upgrading, "_begin", begun)


def a_new_coordinator_forgets_the_new_code(patch: Patch) -> None:
    lose = SimulatedCoordinator.lose

    def lost(self: Any) -> Any:
        self.all_storage.code = None
        return lose(self)

    patch.setattr(SimulatedCoordinator, "lose", lost)


def state_is_not_migrated_on_its_way_to_new_code(patch: Patch) -> None:
    patch.setattr(StateObjects, "current", lambda self, keys, packed: list(packed))


def new_code_without_rows_passes_its_watch(patch: Patch) -> None:
    patch.setattr(upgrading, "longest_watch", lambda watch, window: float("inf"))
    watch = upgrading.Upgrading._watch

    def careless(self: Any, upgrade: Any) -> None:
        watch(self, upgrade)
        upgrade.quiet.clear()

    patch.setattr(upgrading.Upgrading, "_watch", careless)


def an_upgrade_moves_before_its_processes_have_started(patch: Patch) -> None:
    prepared = upgrading.Upgrading._prepared
    patch.setattr(upgrading.Upgrading, "_prepared", lambda self, upgrade, cluster: prepared(self, upgrade, cluster) or True)


def processes_that_started_ahead_are_kept(patch: Patch) -> None:
    patch.setattr(upgrading.Upgrading, "_release", lambda self, upgrade: None)


def _replacing(rescale: Any, replaces: Any) -> Any:
    return replace(rescale, replaces=replaces)
