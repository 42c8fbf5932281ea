"""A scaling of an operator with fake workers: its steps, their order, and the outcome when one of them fails."""

from __future__ import annotations

import numpy as np
import pytest
from acting_job import ROUNDS, ActingJob

import evenflow as ef
from evenflow.engine.errors import JobError, RequestError
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import MigrationReport, ScalingReport, ScalingState
from evenflow.scheduler.protocol.requests import Cancel, MoveKeys, Scale, ShowFigures, ShowHistory
from evenflow.scheduler.record.newest import KEPT
from evenflow.testing.settings import changed

LOADS = {0: 0.1, 1: 0.8, 2: 0.3, 3: 0.3}


class Job(ActingJob):
    """read (2 workers) -> count (2 workers, 8 key groups)."""

    def __init__(self, **config):
        flow = ef.Dataflow("f")
        rows = flow.read(ef.from_items(range(10), name="read"))
        rows.key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
        settings = changed(ef.JobConfig(parallelism=2, key_groups=8, checkpoint=ef.CheckpointConfig(interval=None)), **config)
        super().__init__(flow.plan(config=settings), settings)

    def scale(self, operator, workers, strategy=None):
        return self.ask(Scale(operator, workers, strategy))

    @property
    def reports(self):
        return self.ask(ShowHistory(ScalingReport))

    @property
    def newest(self):
        return self.reports[-1]

    @property
    def owners(self):
        return self.core.migrations.tables["count"].groups.tolist()

    def load(self, worker, loads):
        groups = np.array(sorted(loads), np.int32)
        useful = np.array([loads[group] for group in groups.tolist()])
        self.report(f"count-{worker}", WorkerWindow(f"count-{worker}", 0.0, 1.0, groups=groups, load=useful, keyed_records=10))

    def go_on(self):
        """Carry out all commands, until the scaling is over."""
        for _ in range(ROUNDS):
            self.settle()
            self.tick(0.1)
            if not (self.commands or self.pending or self.core.operator_scaling.busy):
                return
        raise AssertionError(f"after {ROUNDS} rounds this is under way: {self.newest}")


@pytest.fixture
def job():
    return Job()


def test_new_workers_join_first_and_get_load_afterwards(job):
    job.load(0, LOADS)
    job.load(1, {4: 0.1})
    assert job.scale("count", 3) == 0
    assert job.newest.state is ScalingState.CHANGING
    job.go_on()
    report = job.newest
    assert (report.state, report.before, report.after, report.problem) == (ScalingState.DONE, 2, 3, None)
    assert job.core.plan.stage_of("count").parallelism == 3
    assert 2 in [job.owners[group] for group in LOADS], "a group of the hottest worker"
    assert (report.keys_moved, report.state_bytes) != (0, 0)
    assert report.seconds is not None


def test_without_any_load_newcomers_get_as_many_groups_as_the_others(job):
    job.scale("count", 4, "sudden")
    job.go_on()
    assert np.bincount(job.owners).tolist() == [2, 2, 2, 2]
    assert job.ask(ShowHistory(MigrationReport))[-1].strategy == "sudden"


def test_fewer_workers_lose_their_keys_first_and_leave_then(job):
    job.scale("count", 1)
    assert job.newest.state is ScalingState.EMPTYING
    assert job.retired == []
    job.go_on()
    assert job.newest.state is ScalingState.DONE
    assert set(job.owners) == {0}
    assert job.retired == [("count-1",)]
    assert {figures.worker for figures in job.ask(ShowFigures())} == {"count-0", "read-0", "read-1"}


@pytest.mark.parametrize("workers", [1, 3])
def test_a_source_changes_its_workers_and_no_key_moves(job, workers):
    job.scale("read", workers)
    job.go_on()
    assert job.newest.state is ScalingState.DONE
    assert job.core.plan.stage_of("read").parallelism == workers
    assert job.ask(ShowHistory(MigrationReport)) == []


def test_operator_may_be_named_by_any_in_its_chain(job):
    job.scale("out", 3)
    job.go_on()
    assert (job.newest.operator, job.newest.state) == ("count", ScalingState.DONE)


def test_scaling_to_the_present_number_does_nothing(job):
    job.scale("count", 2)
    assert job.newest.state is ScalingState.DONE
    assert job.commands == job.pending == []


def test_workers_that_do_not_start_leave_the_job_as_it_was_and_the_report_says_why(job):
    job.scale("count", 3)
    job.not_spawned("count-2 did not start within 60s")
    job.tick()
    assert (job.newest.state, job.newest.problem) == (ScalingState.FAILED, "count-2 did not start within 60s")
    assert job.core.plan.stage_of("count").parallelism == 2
    assert job.retired == [("count-2",)]
    job.scale("count", 4)
    job.go_on()
    assert job.newest.state is ScalingState.DONE


def test_keys_that_come_back_meanwhile_keep_their_worker_in_the_job(job):
    job.scale("count", 1)
    end = job.core.migrations.tables.copy()
    job.obey()
    job.core.migrations.tables.update(end)
    job.tick()
    assert (job.newest.state, job.newest.problem) == (ScalingState.FAILED, "keys came to workers that were to leave")
    assert job.core.plan.stage_of("count").parallelism == 2


def test_a_loss_while_workers_join_ends_the_scaling_and_says_so():
    job = Job(checkpoint={"dir": "saved"})
    job.scale("count", 3)
    job.lost("read-0", "it was killed")
    job.go_on()
    assert (job.newest.state, job.newest.problem) == (ScalingState.FAILED, "the job was restored from its last checkpoint")
    assert job.retired == [("count-2",)]
    job.tick(1.0)
    job.settle()
    assert (job.core.state, job.core.plan.stage_of("count").parallelism) == (JobState.RUNNING, 2)


def test_the_end_of_the_job_while_workers_join_ends_the_scaling_at_once_and_says_so(job):
    job.scale("count", 3)
    job.ask(Cancel())
    assert job.newest.state is ScalingState.FAILED
    assert job.newest.problem == "the stream ended before"


@pytest.mark.parametrize(
    ("operator", "workers", "words"),
    [
        pytest.param("cuont", 3, "has no operator `cuont`; there are: .*count", id="unknown operator"),
        pytest.param("count", 0, "`count` can't have 0 workers; the least is 1", id="none"),
        pytest.param("count", 9, "`count` can't have 9 workers: it has 8 key groups", id="too many"),
    ],
)
def test_wrong_request_is_refused_and_changes_nothing(job, operator, workers, words):
    with pytest.raises(RequestError, match=words):
        job.scale(operator, workers)
    assert job.reports == []
    assert job.commands == []


def test_one_scaling_runs_at_a_time(job):
    job.scale("count", 3)
    with pytest.raises(JobError, match=r"job `f`: scaling 0 is under way \(changing workers\)"):
        job.scale("read", 3)
    with pytest.raises(JobError, match="rescale 0 of `count` is under way"):
        job.ask(MoveKeys("count", (0,), (), 1))
    assert len(job.reports) == 1


def test_nothing_joins_while_keys_move(job):
    job.ask(MoveKeys("count", (0,), (), 1))
    with pytest.raises(JobError, match="migration 0 of `count` is under way"):
        job.scale("count", 3)
    assert job.reports == []


def test_a_job_that_has_ended_is_not_scaled(job):
    job.ask(Cancel())
    with pytest.raises(JobError, match="job `f` is cancelled: workers can only join or leave while it runs"):
        job.scale("count", 3)


def test_a_job_remembers_the_newest_of_its_scalings_and_what_they_moved(job):
    for number in range(KEPT + 10):
        assert job.scale("count", 3 - number % 2, "sudden") == number
        job.go_on()
    reports = job.reports
    assert [report.number for report in reports] == list(range(10, KEPT + 10))
    assert all(report.state is ScalingState.DONE and report.keys_moved for report in reports)
    assert len(list(job.core.record.rescales)) == KEPT
