"""What may be asked of a job about moving keys, and the errors for what may not."""

from __future__ import annotations

import shutil
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.actors.run_memory import RunMemory
from evenflow.actors.saved_state import SupersededError
from evenflow.actors.supervisor import Supervisor
from evenflow.engine.batch import Batch
from evenflow.engine.errors import JobError, RecordError, RequestError
from evenflow.engine.plan.rescale import rescale
from evenflow.engine.protocol.effects import Prepared, Switched
from evenflow.engine.protocol.handover import Arrived
from evenflow.engine.protocol.routing import Move, RoutingTable
from evenflow.scheduler.load_snapshot import hash_of
from evenflow.scheduler.manifest import TaskEntry
from evenflow.scheduler.messages import Announce, Announced, Failed, Switch
from evenflow.scheduler.migration import MigrationState
from evenflow.scheduler.newest import KEPT
from evenflow.scheduler.window import WorkerWindow
from evenflow.testing.settings import changed


class Job:
    """A supervisor of a job with 4 key groups on 2 workers; `told` are its commands."""

    def __init__(self, **config):
        flow = ef.Dataflow("f")
        rows = flow.read(ef.from_items([1])).map(lambda row: row).named("double")
        rows.key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
        settings = changed(ef.JobConfig(parallelism=2, key_groups=4), **config)
        self.told, self.wanted = [], []
        self.plan = flow.plan(config=settings)
        self.supervisor = Supervisor(self.plan, settings, self.tell, self.wanted.append)

    def start(self):
        for task in self.plan.tasks:
            self.supervisor.ready(task.name, 0)
        return self

    def tell(self, worker, command):
        self.told.append((worker, command))

    def load(self, worker, loads):
        groups = np.array(sorted(loads), np.int32)
        useful = np.array([loads[group] for group in groups.tolist()])
        self.supervisor.report(f"count-{worker}", WorkerWindow(f"count-{worker}", 0.0, 1.0, groups=groups, load=useful, keyed_records=10))

    def answer(self):
        """Everybody does at once what they are told."""
        while self.told:
            worker, command = self.told.pop(0)
            if isinstance(command, Announce):
                self.steps = {step.version: step for step in command.steps}
                self.supervisor.report(worker, Announced(command.number))
            elif isinstance(command, Switch):
                if worker.endswith("-0"):
                    for move in self.steps[command.version].moves:
                        self.supervisor.report(f"count-{move.target}", Arrived(command.version, move.source, 1, 10))
                self.supervisor.report(worker, Switched(command.version))

    @property
    def moves(self):
        return [move for step in self.supervisor.core.migrations.history[-1].steps for move in step.moves]


@pytest.fixture
def job():
    return Job().start()


def test_what_the_first_workers_met_ends_a_job_before_all_have_begun_and_not_that_the_others_did_not():
    supervisor, refused = Job().supervisor, RecordError("double", "refused", record=1)
    supervisor.ready("from_items-0", 0)
    supervisor.report("double-0", Failed(refused))
    assert not supervisor.not_started(refused)
    assert supervisor.status().error is refused
    supervisor = Job().supervisor
    assert supervisor.not_started(OSError("no room"))
    assert str(supervisor.status().error) == "job `f` did not start: no room"


def test_groups_and_keys_move_to_a_worker(job):
    number = job.supervisor.migrate("count", [0, 1], [7], 1, "sudden")
    away = hash_of(7)
    (move,) = job.moves
    assert (number, move.source, move.target, move.groups) == (0, 0, 1, (0, 1))
    job.answer()
    (report,) = job.supervisor.migrations()
    assert (report.state, report.operator, report.strategy, report.reason) == (MigrationState.DONE, "count", "sudden", "by hand")
    assert report.latency_ms is None
    assert job.supervisor.core.migrations.tables["count"].owners(np.array([away], np.uint64)).tolist() == [1]


def test_operator_may_be_named_by_any_in_its_chain(job):
    job.supervisor.migrate("out", [0], [], 1, "sudden")
    assert job.moves == [Move(0, 1, (0,))]


def test_key_of_several_columns_is_a_tuple(job):
    job.supervisor.migrate("count", [], [(3,)], 1, "sudden")
    assert [move.keys for move in job.moves] in ([(hash_of(3),)], [])


def test_rebalance_moves_as_the_balancer_plans(job):
    job.load(0, {0: 0.5, 1: 0.5})
    job.load(1, {2: 0.1})
    job.supervisor.rebalance("count", "hotspot", "fluid")
    job.answer()
    (report,) = job.supervisor.migrations()
    assert report.plan is not None
    assert report.reason == f"hotspot: {report.plan.reason}"
    assert report.state is MigrationState.DONE
    assert sorted(job.supervisor.core.migrations.tables["count"].groups.tolist()[:2]) == [0, 1]


def test_strategy_is_the_jobs_unless_the_call_names_one():
    for asked, used in (("lazy", "lazy"), (None, "fluid")):
        job = Job(migration_strategy="fluid").start()
        job.supervisor.migrate("count", [0], [], 1, asked)
        assert job.supervisor.migrations()[0].strategy == used


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        pytest.param(lambda s: s.migrate("cuont", [0], [], 1, None), "has no operator `cuont`; there are: .*count", id="unknown operator"),
        pytest.param(
            lambda s: s.migrate("double", [0], [], 1, None),
            "`double` has no keyed state to move; operators that have: count",
            id="no state",
        ),
        pytest.param(
            lambda s: s.migrate("count", [4], [], 1, None), "`count` has no key group 4: its groups are 0 to 3", id="unknown group"
        ),
        pytest.param(lambda s: s.migrate("count", [-1], [], 1, None), "`count` has no key group -1", id="negative group"),
        pytest.param(
            lambda s: s.migrate("count", [0], [], 2, None), "`count` has no worker 2: its 2 workers are 0 to 1", id="unknown worker"
        ),
        pytest.param(
            lambda s: s.migrate("count", [0], [], 1, "smooth"), "'smooth' is not a migration strategy: use one of", id="unknown strategy"
        ),
        pytest.param(lambda s: s.migrate("count", [0], [], 1, "restart"), "the strategy restart goes through a savepoint", id="restart"),
        pytest.param(
            lambda s: s.rebalance("count", "hotspot", "restart"), "the strategy restart goes through a savepoint", id="restart to balance"
        ),
        pytest.param(lambda s: s.rebalance("cuont", "hotspot", None), "has no operator `cuont`", id="unknown operator to balance"),
        pytest.param(lambda s: s.rebalance("count", "coldspot", None), "coldspot", id="unknown balancer"),
        pytest.param(lambda s: s.snapshot("double"), "`double` has no keyed state", id="snapshot of a stateless operator"),
    ],
)
def test_wrong_request_is_refused_and_changes_nothing(job, ask, words):
    with pytest.raises(RequestError, match=words):
        ask(job.supervisor)
    assert job.supervisor.migrations() == []
    assert job.told == []


def test_nothing_moves_before_the_job_runs():
    job = Job()
    with pytest.raises(JobError, match="job `f` is starting: keys can only move while it runs"):
        job.supervisor.migrate("count", [0], [], 1, "sudden")
    assert job.supervisor.migrations() == []


def test_one_migration_at_a_time(job):
    job.supervisor.migrate("count", [0], [], 1, "sudden")
    with pytest.raises(JobError, match="migration 0 of `count` is under way"):
        job.supervisor.rebalance("count", "hotspot", None)
    assert len(job.supervisor.migrations()) == 1


def test_seconds_are_counted_from_when_the_job_runs_to_its_end():
    job = Job()
    assert job.supervisor.status().running_seconds == 0.0
    job.start()
    assert job.supervisor.status().running_seconds > 0.0
    job.supervisor.cancel()
    assert job.supervisor.status().running_seconds == job.supervisor.status().running_seconds > 0.0


def test_job_that_never_ran_has_run_for_no_time():
    job = Job()
    job.supervisor.cancel()
    job.start()
    assert job.supervisor.status().running_seconds == 0.0


def test_coordinator_that_comes_back_goes_on_with_the_workers_and_tables_of_the_newest_checkpoint_and_a_later_attempt(tmp_path):
    job, wanted = Job(), []
    config = ef.JobConfig(parallelism=2, key_groups=4, checkpoint=ef.CheckpointConfig(str(tmp_path)))
    lost = Supervisor(job.plan, config, job.tell, wanted.append, run="run")
    plan = rescale(job.plan, job.plan.stage_of("count"), 3, job.plan.tables).plan
    groups = [2, 2, 0, 1]
    checkpoints = lost.core.checkpoints
    checkpoints.begin(0.0)
    checkpoints.pending.prepared = {task.name: TaskEntry([]) for task in plan.tasks}
    tables = {"count": RoutingTable(np.array(groups, np.uint16))}
    assert lost.saved.complete(checkpoints.manifest(plan, 7, 0.0, tables)) is None
    back = Supervisor(job.plan, config, job.tell, wanted.append, run="run", resume=True)
    back.redeploy()
    (redeploy,) = wanted
    assert redeploy.plan.stage_of("count").parallelism == 3
    assert redeploy.plan.tables["count"].groups.tolist() == groups
    assert redeploy.attempt == back.status().attempt > 7


def test_a_job_remembers_the_newest_of_its_migrations_and_grows_by_no_more(job):
    for number in range(KEPT + 30):
        assert job.supervisor.migrate("count", [0], [], (number + 1) % 2, "sudden") == number
        job.answer()
    assert [report.number for report in job.supervisor.migrations()] == list(range(30, KEPT + 30))
    assert all(report.state is MigrationState.DONE for report in job.supervisor.migrations())
    assert len(job.supervisor._spans) == KEPT


class Counting(type(ef.to_list([]))):
    """Of a sink: what it was asked to do; it can take back unless it is told that it can't."""

    def __init__(self, *, retractable=True):
        super().__init__([], "out")
        self.asked, self._retractable = [], retractable

    @property
    def retractable(self):
        return self._retractable

    def commit(self, checkpoint, committables):
        self.asked.append(("commit", checkpoint))
        return super().commit(checkpoint, committables)

    def retract(self, after):
        self.asked.append(("retract", after))
        return super().retract(after)


class Run:
    """Of a job whose coordinator is lost and comes back, in a folder of its own."""

    def __init__(self, folder, **sink):
        self.sink, self.memory, self.folder = Counting(**sink), RunMemory(), folder / "f"
        flow = ef.Dataflow("f")
        flow.read(ef.from_items([1])).write(self.sink)
        self.config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder), interval=None))
        self.plan = flow.plan(config=self.config)
        self.wanted = []
        self.supervisor = self.coordinator(resume=False)

    def coordinator(self, *, resume):
        return Supervisor(
            self.plan, self.config, lambda *_: None, self.wanted.append, run="run", resume=resume, memory=self.memory
        )  # fmt: skip

    def begin(self):
        for task in self.plan.tasks:
            self.supervisor.ready(task.name, self.supervisor.core.attempt)

    def checkpoint(self):
        number = self.supervisor.checkpoint()
        self.supervisor.tick()
        for task in self.plan.tasks:
            self.supervisor.report(task.name, Prepared(number, {"out": []}, 0, [0, 0]))
        return number

    def lose_coordinator(self):
        """The one that comes back has brought the job up where it can."""
        self.supervisor = self.coordinator(resume=True)
        self.supervisor.redeploy()
        return self.supervisor.recommit(self.wanted[-1])

    def delete(self, *checkpoints, what="checkpoint-{:08d}/manifest"):
        for checkpoint in checkpoints:
            path = self.folder / what.format(checkpoint)
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("deleted", "what", "goes_on_from"),
    [
        pytest.param((3,), "checkpoint-{:08d}/manifest", 2, id="the newest manifest"),
        pytest.param((3,), "checkpoint-{:08d}", 2, id="its folder"),
        pytest.param((2, 3), "checkpoint-{:08d}", 1, id="two"),
        pytest.param((1, 2, 3), "checkpoint-{:08d}/manifest", 0, id="all manifests"),
        pytest.param((0,), "", 0, id="the job's folder"),
    ],
)
def test_coordinator_that_comes_back_knows_of_committed_checkpoints_that_it_does_not_find(tmp_path, deleted, what, goes_on_from, caplog):
    run = Run(tmp_path)
    run.begin()
    assert [run.checkpoint() for _ in range(3)] == [1, 2, 3]
    run.delete(*deleted, what=what)
    run.sink.asked.clear()
    assert run.lose_coordinator()
    assert run.sink.asked == [("retract", goes_on_from), *([("commit", goes_on_from)] if goes_on_from else [])]
    assert "checkpoint 3, its newest, is damaged or gone; it goes on from " in caplog.text
    run.begin()
    assert run.checkpoint() == 4, "no number comes twice"
    assert run.lose_coordinator()
    assert run.sink.asked[-2:] == [("commit", 4), ("commit", 4)], "what was taken back is not taken back again"


def test_coordinator_that_comes_back_stops_if_rows_of_a_checkpoint_that_is_gone_can_not_be_taken_back(tmp_path):
    run = Run(tmp_path, retractable=False)
    run.begin()
    for _ in range(2):
        run.checkpoint()
    run.delete(1, 2)
    (run.folder / "checkpoint-00000002" / "some.state").touch()
    assert not run.lose_coordinator()
    words = r"checkpoint 2, its newest, is damaged or gone, and it would go on from the beginning, but sink `out` can't take back"
    with pytest.raises(JobError, match=words):
        raise run.supervisor.status().error
    assert list(run.folder.glob("*/*.state")), "who puts the manifest back can begin from it"


def test_coordinator_that_comes_back_before_anything_was_committed_takes_nothing_back(tmp_path):
    run = Run(tmp_path, retractable=False)
    assert run.lose_coordinator()
    run.begin()
    run.checkpoint()
    assert run.sink.asked == [("commit", 1)]


def test_seconds_and_checkpoints_are_counted_on_when_the_coordinator_comes_back(tmp_path, monkeypatch):
    run, clock = Run(tmp_path), [time.time()]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    run.begin()
    run.checkpoint()
    clock[0] += 1000.0
    assert run.lose_coordinator()
    assert run.supervisor.status().running_seconds >= 1000.0
    run.begin()
    run.checkpoint()
    assert (run.supervisor.status().running_seconds >= 1000.0, run.supervisor.status().completed_checkpoints) == (True, 2)
    early = Run(tmp_path / "another")
    assert early.lose_coordinator()
    assert early.supervisor.status().running_seconds == 0.0
    early.begin()
    assert early.memory.record.running_since == clock[0]


def test_supervisor_that_was_taken_for_lost_leaves_what_the_next_one_has_prepared_alone(tmp_path):
    job, wanted = Job(), []
    sink = ef.write_parquet(tmp_path / "out")
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).write(sink)
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints")))
    plan = flow.plan(config=config)
    sink.start()
    lost = Supervisor(plan, config, job.tell, wanted.append, run="run")
    lost.redeploy()
    back = Supervisor(plan, config, job.tell, wanted.append, run="run", resume=True)
    back.redeploy()
    before, after = wanted
    assert after.attempt > before.attempt
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"item": [1]})))
    prepared = writer.prepare(1)
    with pytest.raises(SupersededError):
        lost.recommit(before)
    sink.commit(1, prepared)
    assert pq.read_table(tmp_path / "out").to_pylist() == [{"item": 1}]
    assert back.recommit(after)
    sink.stop()
