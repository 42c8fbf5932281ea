from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.engine.errors import JobError
from evenflow.scheduler.protocol.reports import CheckpointReport, CheckpointState
from evenflow.testing.chaos.accidents import Accidents, OperationTally


@dataclass
class FakeStatus:
    attempt: int


@dataclass
class FakeJob:
    """A job whose checkpoints are given by their states; without any it does not answer."""

    states: list[CheckpointState] | None = field(default_factory=list)
    attempt: int = 0

    def checkpoints(self):
        if self.states is None:
            raise JobError("its coordinator was lost")
        return [CheckpointReport(number=number, state=state, reason="by hand", seconds=1.0) for number, state in enumerate(self.states, 1)]

    def status(self):
        return FakeStatus(self.attempt)

    def scalings(self):
        return []

    migrations = scalings


def test_job_has_recovered_when_a_checkpoint_that_began_after_the_kill_is_complete():
    job = FakeJob([CheckpointState.COMPLETE, CheckpointState.PENDING])
    accidents = Accidents(job)
    accidents.note("worker", "count-0", "")
    for states in (
        [CheckpointState.COMPLETE, CheckpointState.PENDING],
        [CheckpointState.COMPLETE, CheckpointState.COMPLETE],  # had all it needed before the kill
        [CheckpointState.COMPLETE, CheckpointState.COMPLETE, CheckpointState.PENDING],
    ):
        job.states = states
        accidents.observe()
        assert accidents.kills[0].recovery is None
    job.states = [*job.states[:2], CheckpointState.COMPLETE]
    accidents.observe()
    assert accidents.kills[0].recovery is not None


def test_a_job_that_does_not_answer_has_not_recovered():
    job = FakeJob(None)
    accidents = Accidents(job)
    accidents.note("coordinator", "coordinator", "")
    accidents.observe()
    assert accidents.kills[0].recovery is None


def test_table_counts_kills_by_kind_and_restarts():
    job = FakeJob([CheckpointState.COMPLETE])
    accidents = Accidents(job)
    accidents.observe()
    for attempt, kind in enumerate(("worker", "worker", "coordinator"), 1):
        accidents.note(kind, "somebody", "")
        job.attempt = attempt
        accidents.observe()
    rows = [line.split()[:2] for line in accidents.table().splitlines()]
    assert ["worker", "2"] in rows
    assert ["coordinator", "1"] in rows
    assert ["all", "3"] in rows
    assert ["restarts:", "3"] in rows


def test_kill_says_what_was_under_way():
    kill = Accidents(FakeJob()).note("worker", "count-0", "count goes from 1 to 2 workers")
    assert str(kill).endswith("kill 1: worker: count-0, while count goes from 1 to 2 workers")


def test_tally_keeps_what_a_lost_coordinator_knew():
    tally = OperationTally()
    for states in (["done", "running"], [], ["failed"]):
        tally.observe(states)
    assert str(tally) == "1 done, 1 failed, 1 running"
