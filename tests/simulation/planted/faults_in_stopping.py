"""Faults in how a job stops at a barrier and continues in another run. Each breaks a core in a few lines."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.actors.task.task_interpreter import TaskInterpreter
from evenflow.engine.protocol.elements import MAX_TIME, Barrier
from evenflow.engine.task.core import TaskCore
from evenflow.scheduler.parts.checkpointing import Checkpointing
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.manifest import Manifest

Patch = pytest.MonkeyPatch


def open_windows_are_emitted_when_the_job_stops(patch: Patch) -> None:
    pass_barrier = TaskCore._pass_barrier

    def fires_first(self: Any, barrier: Barrier) -> None:
        if barrier.last:
            self._advance(MAX_TIME)
        pass_barrier(self, barrier)

    patch.setattr(TaskCore, "_pass_barrier", fires_first)


def rows_in_flight_are_lost_when_the_job_stops(patch: Patch) -> None:
    """Report the source's position after a batch that it read and did not send before the barrier."""
    prepared = TaskInterpreter._prepared

    def behind_another_batch(self: Any, report: Any) -> None:
        reader = self.source.reader
        if reader is not None and self.task.stopped:
            reader.poll(1)
            report = type(report)(report.checkpoint, report.committables, report.watermark, reader.position(), own_times=report.own_times)
        prepared(self, report)

    patch.setattr(TaskInterpreter, "_prepared", behind_another_batch)


def what_was_committed_is_left_to_the_next_run_to_commit(patch: Patch) -> None:
    patch.setattr(Checkpointing, "_close_run", lambda self: self._lifecycle.end(JobState.FINISHED))


def job_ends_before_its_savepoint_is_complete(patch: Patch) -> None:
    committed = Checkpointing.committed

    def at_once(self: Any, answer: Any) -> None:
        committed(self, answer)
        if self._ends_with is not None:
            self._lifecycle.end(JobState.FINISHED)

    patch.setattr(Checkpointing, "committed", at_once)


def savepoint_has_the_rows_that_the_job_has_committed(patch: Patch) -> None:
    """Copy the checkpoint at the barrier, whose rows the job commits, to the savepoint."""
    patch.setattr(Manifest, "as_savepoint", lambda self: self)

    def at_the_barrier(self: Any) -> None:
        self._lifecycle.end(JobState.FINISHED)

    begin = Checkpointing.begin_last

    def with_a_savepoint(self: Any) -> bool:
        begun = begin(self)
        if begun and self._copies_last:
            self.savepoints.add(self._stop, self._job.stop_asked.savepoint)
        return begun

    patch.setattr(Checkpointing, "begin_last", with_a_savepoint)
    patch.setattr(Checkpointing, "_close_run", at_the_barrier)


def sources_read_on_behind_the_last_barrier(patch: Patch) -> None:
    patch.setattr(TaskInterpreter, "is_source", property(lambda self: self.source.reader is not None and not self.over))
