"""Requests to move keys, and the errors for impossible ones."""

from __future__ import annotations

import numpy as np
import pytest
from acting_job import ActingJob

import evenflow as ef
from evenflow.engine.errors import JobError, RequestError
from evenflow.engine.protocol.routing import Move as GroupMove
from evenflow.scheduler.load.load_snapshot import hash_of
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import MigrationReport, MigrationState, SavepointReport
from evenflow.scheduler.protocol.requests import (
    HISTORIES,
    Balance,
    Cancel,
    MoveKeys,
    Rebalance,
    ShowFigures,
    ShowHistory,
    ShowLoad,
    ShowSnapshot,
    ShowStatus,
    ShowView,
    TakeCheckpoint,
    TakeSavepoint,
)
from evenflow.scheduler.record.newest import KEPT
from evenflow.testing.settings import changed


class Job(ActingJob):
    """A job with 4 key groups on 2 workers."""

    def __init__(self, **config):
        flow = ef.Dataflow("f")
        rows = flow.read(ef.from_items([1])).map(lambda row: row).named("double")
        rows.key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
        settings = changed(ef.JobConfig(parallelism=2, key_groups=4), **config)
        super().__init__(flow.plan(config=settings), settings)

    def load(self, worker, loads):
        groups = np.array(sorted(loads), np.int32)
        useful = np.array([loads[group] for group in groups.tolist()])
        self.report(f"count-{worker}", WorkerWindow(f"count-{worker}", 0.0, 1.0, groups=groups, load=useful, keyed_records=10))

    @property
    def migrations(self):
        return self.ask(ShowHistory(MigrationReport))

    @property
    def moves(self):
        return [move for step in self.core.migrations.history[-1].steps for move in step.moves]


class NewJob(Job):
    """None of its workers has started."""

    def start(self, worker, attempt):
        pass


@pytest.fixture
def job():
    return Job()


def test_groups_and_keys_move_to_a_worker(job):
    number = job.ask(MoveKeys("count", (0, 1), (7,), 1, "sudden"))
    away = hash_of(7)
    (move,) = job.moves
    assert (number, move.source, move.target, move.groups) == (0, 0, 1, (0, 1))
    job.settle()
    (report,) = job.migrations
    assert (report.state, report.operator, report.strategy, report.reason) == (MigrationState.DONE, "count", "sudden", "by hand")
    assert report.latency_ms is None
    assert job.core.migrations.tables["count"].owners(np.array([away], np.uint64)).tolist() == [1]


def test_operator_may_be_named_by_any_in_its_chain(job):
    job.ask(MoveKeys("out", (0,), (), 1, "sudden"))
    assert job.moves == [GroupMove(0, 1, (0,))]


def test_key_of_several_columns_is_a_tuple(job):
    job.ask(MoveKeys("count", (), ((3,),), 1, "sudden"))
    assert [move.keys for move in job.moves] in ([(hash_of(3),)], [])


def test_rebalance_moves_as_the_balancer_plans(job):
    job.load(0, {0: 0.5, 1: 0.5})
    job.load(1, {2: 0.1})
    job.ask(Rebalance("count", "hotspot", "fluid"))
    job.settle()
    (report,) = job.migrations
    assert report.plan is not None
    assert report.reason == f"hotspot, by hand: {report.plan.reason}"
    assert report.state is MigrationState.DONE
    assert sorted(job.core.migrations.tables["count"].groups.tolist()[:2]) == [0, 1]


@pytest.mark.parametrize(("asked", "used"), [("lazy", "lazy"), (None, "fluid")])
def test_strategy_is_the_jobs_unless_the_call_names_one(asked, used):
    job = Job(migration_strategy="fluid")
    job.ask(MoveKeys("count", (0,), (), 1, asked))
    assert job.migrations[0].strategy == used


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        pytest.param(MoveKeys("cuont", (0,), (), 1), "has no operator `cuont`; there are: .*count", id="unknown operator"),
        pytest.param(MoveKeys("double", (0,), (), 1), "`double` has no keyed state to move; operators that have: count", id="no state"),
        pytest.param(MoveKeys("count", (), (), 1), r"`count`: nothing to move: give groups=\[...\] or keys=\[...\]", id="nothing"),
        pytest.param(MoveKeys("count", (4,), (), 1), "`count` has no key group 4: its groups are 0 to 3", id="unknown group"),
        pytest.param(MoveKeys("count", (-1,), (), 1), "`count` has no key group -1", id="negative group"),
        pytest.param(MoveKeys("count", (0,), (), 2), "`count` has no worker 2: its 2 workers are 0 to 1", id="unknown worker"),
        pytest.param(MoveKeys("count", (0,), (), True), "`count` has no worker True", id="no number of a worker"),
        pytest.param(MoveKeys("count", (0,), (), 1, "smooth"), "'smooth' is not a migration strategy: use one of", id="unknown strategy"),
        pytest.param(MoveKeys("count", (0,), (), 1, "restart"), "the strategy restart goes through a checkpoint", id="restart"),
        pytest.param(Rebalance("count", "hotspot", "restart"), "the strategy restart goes through a checkpoint", id="restart to balance"),
        pytest.param(Rebalance("cuont", "hotspot"), "has no operator `cuont`", id="unknown operator to balance"),
        pytest.param(Rebalance("count", "coldspot"), "coldspot", id="unknown balancer"),
        pytest.param(Balance("count", "coldspot"), "coldspot", id="unknown balancer from now on"),
        pytest.param(Balance("double", "hotspot"), "`double` has no keyed state", id="balancing of a stateless operator"),
        pytest.param(ShowSnapshot("double"), "`double` has no keyed state", id="snapshot of a stateless operator"),
        pytest.param(ShowLoad("cuont"), "has no operator `cuont`", id="load of an unknown operator"),
        pytest.param(TakeSavepoint("folder"), r"a savepoint needs CheckpointConfig\(dir=...\)", id="savepoint without a folder"),
    ],
)
def test_wrong_request_is_refused_and_changes_nothing(job, request_, words):
    with pytest.raises(RequestError, match=words):
        job.ask(request_)
    job.tick()
    assert job.migrations == []
    assert job.commands == job.pending == []
    assert job.core.state is JobState.RUNNING


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        pytest.param(MoveKeys("count", (0,), (), 1, "sudden"), "job `f` is starting: keys can only move while it runs", id="move"),
        pytest.param(TakeCheckpoint(), "job `f` is starting: a checkpoint can only be taken while it runs", id="checkpoint"),
    ],
)
def test_nothing_changes_before_the_job_runs(request_, words):
    job = NewJob()
    with pytest.raises(JobError, match=words):
        job.ask(request_)
    assert job.migrations == []


def test_one_migration_runs_at_a_time(job):
    job.ask(MoveKeys("count", (0,), (), 1, "sudden"))
    with pytest.raises(JobError, match="migration 0 of `count` is under way"):
        job.ask(Rebalance("count", "hotspot"))
    assert len(job.migrations) == 1


def test_a_job_remembers_the_newest_of_its_migrations_and_grows_by_no_more(job):
    for number in range(KEPT + 30):
        assert job.ask(MoveKeys("count", (0,), (), (number + 1) % 2, "sudden")) == number
        job.settle()
    assert [report.number for report in job.migrations] == list(range(30, KEPT + 30))
    assert all(report.state is MigrationState.DONE for report in job.migrations)


def test_a_job_remembers_the_newest_of_its_savepoints():
    job = Job(checkpoint={"dir": "saved"})
    numbers = []
    for _ in range(KEPT + 30):
        numbers.append(job.ask(TakeSavepoint("folder")))
        job.tick(1.0)
        job.settle()
    reports = job.ask(ShowHistory(SavepointReport))
    assert [report.number for report in reports] == numbers[-KEPT:]
    assert all(report.done for report in reports)


@pytest.mark.parametrize("question", HISTORIES, ids=lambda question: type(question).__name__)
def test_the_history_of_a_job_that_has_ended_can_be_read(job, question):
    before = job.ask(question)
    job.ask(Cancel())
    assert job.ask(question) == before == []


def test_questions_change_nothing(job):
    story = job.core.record.story
    for question in (*HISTORIES, ShowStatus(), ShowFigures(), ShowLoad("count"), ShowSnapshot("count"), ShowView()):
        job.ask(question)
    assert (job.core.effects(), job.core.record.story) == ([], story)
