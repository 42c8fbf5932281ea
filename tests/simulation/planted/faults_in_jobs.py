"""Faults in jobs: in checkpoints, commits, recovery, scaling, and the end of coordinators. Each breaks a core in a few lines."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from evenflow.actors.job.job_interpreter import JobInterpreter
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.scheduler.parts.attempts import Attempts
from evenflow.scheduler.parts.checkpointing import Checkpointing
from evenflow.scheduler.parts.node_scaling import NodeScaling
from evenflow.scheduler.parts.reconfiguration import Reconfiguration
from evenflow.scheduler.protocol.effects import Commit, RestoreSinks
from evenflow.scheduler.protocol.storage_answers import ManifestSaved
from evenflow.scheduler.record.checkpoints import Checkpoints
from evenflow.scheduler.record.job_record import JobRecord
from evenflow.scheduler.record.rescaling import Rescaling
from evenflow.testing.simulation.nodes import NODES, SimulatedNodes

Patch = pytest.MonkeyPatch


def checkpoint_is_committed_before_its_manifest(patch: Patch) -> None:
    save = Checkpointing._save

    def commits_first(self: Any) -> None:
        job = self._job
        committables = {name: list(items) for name, items in job.checkpoints._committables.items()}
        job.emit(Commit(job.checkpoints.last, committables))
        save(self)

    patch.setattr(Checkpointing, "_save", commits_first)


def manifest_that_was_not_written_counts(patch: Patch) -> None:
    saved = Checkpointing.saved
    patch.setattr(Checkpointing, "saved", lambda self, answer: saved(self, ManifestSaved(answer.checkpoint)))


def checkpoint_begins_while_keys_move(patch: Patch) -> None:
    patch.setattr(JobRecord, "in_step", property(lambda self: False))


def rows_that_were_not_committed_stay_when_the_job_goes_back(patch: Patch) -> None:
    reset = Checkpoints.reset

    def keeping(self: Any, now: float) -> None:
        kept = self._committables
        reset(self, now)
        self._committables = kept

    patch.setattr(Checkpoints, "reset", keeping)


def workers_count_as_finished_in_the_next_attempt_too(patch: Patch) -> None:
    reset = Checkpoints.reset

    def keeping(self: Any, now: float) -> None:
        kept = self._finished
        reset(self, now)
        self._finished = kept

    patch.setattr(Checkpoints, "reset", keeping)


def commit_is_not_repeated_when_the_job_goes_back(patch: Patch) -> None:
    emit = JobRecord.emit

    def without_committables(self: Any, *effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, RestoreSinks) and effect.manifest is not None:
                effect = replace(effect, manifest=replace(effect.manifest, committables={}))  # noqa: PLW2901
            emit(self, effect)

    patch.setattr(JobRecord, "emit", without_committables)


def rows_behind_the_checkpoint_are_not_taken_back(patch: Patch) -> None:
    emit = JobRecord.emit

    def without_retraction(self: Any, *effects: Any) -> None:
        emit(self, *(replace(effect, retracts=None) if isinstance(effect, RestoreSinks) else effect for effect in effects))

    patch.setattr(JobRecord, "emit", without_retraction)


def reports_of_an_attempt_that_is_over_count(patch: Patch) -> None:
    def whatever_the_attempt(self: Any, worker: str, attempt: int, report: Any) -> None:
        self._event(self.core.report, worker, report)

    patch.setattr(JobInterpreter, "report", whatever_the_attempt)


def workers_that_leave_are_not_awaited(patch: Patch) -> None:
    left = Rescaling._left
    patch.setattr(Rescaling, "_left", lambda self, finished, now: left(self, frozenset({*finished, *self.rescale.leaving}), now))


def senders_open_channels_before_receivers_know_them(patch: Patch) -> None:
    receivers = Rescaling.receivers

    def nobody_is_told(self: Any) -> Any:
        receivers(self)
        return self._expect([])

    patch.setattr(Rescaling, "receivers", nobody_is_told)


def routing_tables_are_forgotten_when_the_job_goes_back(patch: Patch) -> None:
    go_back = Attempts.go_back

    def with_even_tables(self: Any, *args: Any, **kwargs: Any) -> None:
        go_back(self, *args, **kwargs)
        job = self._job
        tables = {name: RoutingTable(table.groups * 0, {}) for name, table in job.migrations.tables.items()}
        job.migrations.tables = tables

    patch.setattr(Attempts, "go_back", with_even_tables)


def migration_is_over_before_its_last_step(patch: Patch) -> None:
    advance = Reconfiguration._advance

    def skipping(self: Any, migration: Any) -> bool:
        if migration.in_step and migration.steps_done + 1 == len(migration.steps):
            migration.arrived = {(move.source, move.target) for move in migration.step.moves}
        return advance(self, migration)

    patch.setattr(Reconfiguration, "_advance", skipping)


def node_counts_as_given_back_while_its_workers_are_to_go_on_elsewhere(patch: Patch) -> None:
    patch.setattr(NodeScaling, "_stay", lambda self, order, cluster: [])


def workers_that_must_stay_are_left_on_the_node(patch: Patch) -> None:
    begin = NodeScaling._begin

    def without_replacing(self: Any, report: Any, steps: Any) -> None:
        begin(self, replace(report, replaced=()), steps)

    patch.setattr(NodeScaling, "_begin", without_replacing)


def processes_start_on_any_node(patch: Patch) -> None:
    """Place processes on any node, as Ray does unless they set CPUs aside or are pinned to a node."""
    place = SimulatedNodes.place
    began = count()

    def anywhere(self: Any, workers: Any) -> None:
        there = list(workers)
        moved = [worker for worker in there if self._places.get(worker) in {None, *self._avoided}]
        place(self, there)
        self._places |= {worker: NODES[next(began) % len(NODES)] for worker in moved}

    patch.setattr(SimulatedNodes, "place", anywhere)
