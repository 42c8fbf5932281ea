"""A lost coordinator is replaced: the point of recovery, the sinks' retractions, and the reports that count."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.actors.job.job_interpreter import JobInterpreter
from evenflow.actors.job.job_storage import JobStorage
from evenflow.actors.job.run_memory import RunMemory
from evenflow.actors.task.saved_state import SavedState, SupersededError
from evenflow.engine.batch import Batch
from evenflow.engine.errors import JobError
from evenflow.engine.plan.rescale import rescale
from evenflow.engine.protocol.effects import Prepared
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.scheduler.job.core import JobCore
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.manifest import TaskEntry
from evenflow.scheduler.protocol.requests import ChangeSettings, ShowStatus, TakeCheckpoint
from evenflow.scheduler.record.checkpoints import Checkpoints
from evenflow.scheduler.record.restoring.run_claim import RunClaim
from evenflow.testing.settings import changed


class Counting(type(ef.to_list([]))):
    """A sink that records its calls; it can retract unless it is told that it can't."""

    def __init__(self, *, retractable=True):
        super().__init__([], "out")
        self.calls, self._retractable = [], retractable

    @property
    def retractable(self):
        return self._retractable

    def commit(self, checkpoint, committables):
        self.calls.append(("commit", checkpoint))
        return super().commit(checkpoint, committables)

    def retract(self, after):
        self.calls.append(("retract", after))
        return super().retract(after)


class Run:
    """A job whose coordinator is lost and returns. It is both ports of its interpreter; storage answers at once."""

    def __init__(self, folder, **sink):
        self.sink, self.memory, self.folder = Counting(**sink), RunMemory(), folder / "f"
        flow = ef.Dataflow("f")
        flow.read(ef.from_items([1])).write(self.sink)
        self.config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder), interval=None))
        self.plan = flow.plan(config=self.config)
        self.now, self.deployed = 1000.0, None
        self.begin()

    def begin(self, *, takes_over=False):
        self.storage = JobStorage(self.plan, self.config, claim=RunClaim("run"), memory=self.memory)
        core = JobCore(self.plan, self.config, self.storage.restore_point(takes_over=takes_over))
        self.job = JobInterpreter(core, self, self, lambda: self.now)
        self.job.begin()

    def put(self, effect):
        answer = self.storage.perform(effect, self.job.stored)
        if answer is not None:
            self.job.stored(answer)

    def deploy(self, wanted):
        self.deployed = wanted

    def tell(self, worker, command):
        pass

    def view(self, *, oldest):
        return None

    def long_calls(self):
        return {}

    @property
    def status(self):
        return self.job.ask(ShowStatus())

    def start(self):
        for task in self.deployed.plan.tasks:
            self.job.ready(task.name, self.deployed.attempt)
        assert self.status.state is JobState.RUNNING
        return self

    def checkpoint(self):
        number = self.job.ask(TakeCheckpoint())
        self.job.tick()
        for task in self.plan.tasks:
            self.job.report(task.name, self.deployed.attempt, Prepared(number, {"out": []}, 0, [0, 0]))
        return number

    def lose_coordinator(self):
        """Replace the coordinator, which deploys the job if it can."""
        self.deployed = None
        self.begin(takes_over=True)

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
    run = Run(tmp_path).start()
    assert [run.checkpoint() for _ in range(3)] == [1, 2, 3]
    run.delete(*deleted, what=what)
    run.sink.calls.clear()
    run.lose_coordinator()
    assert run.sink.calls == [("retract", goes_on_from), *([("commit", goes_on_from)] if goes_on_from else [])]
    assert "checkpoint 3, its newest, is damaged or missing; it continues from " in caplog.text
    run.start()
    assert run.checkpoint() == 4, "no number comes twice"
    run.lose_coordinator()
    assert run.deployed.manifest.checkpoint == 4
    assert run.sink.calls[-2:] == [("commit", 4), ("commit", 4)], "what was taken back is not taken back again"


def test_coordinator_that_comes_back_stops_if_rows_of_a_lost_checkpoint_can_not_be_retracted(tmp_path):
    run = Run(tmp_path, retractable=False).start()
    for _ in range(2):
        run.checkpoint()
    run.delete(1, 2)
    (run.folder / "checkpoint-00000002" / "some.state").touch()
    run.lose_coordinator()
    assert (run.deployed, run.status.state) == (None, JobState.FAILED)
    words = r"checkpoint 2, its newest, is damaged or missing, and it would continue from the beginning, but sink `out` can't retract"
    with pytest.raises(JobError, match=words):
        raise run.status.error
    assert list(run.folder.glob("*/*.state")), "who puts the manifest back can begin from it"


def test_coordinator_that_comes_back_before_the_first_commit_retracts_nothing(tmp_path):
    run = Run(tmp_path, retractable=False)
    run.lose_coordinator()
    run.start().checkpoint()
    assert run.sink.calls == [("commit", 1)]


def test_seconds_and_checkpoints_are_counted_on_when_the_coordinator_comes_back(tmp_path):
    run = Run(tmp_path).start()
    run.checkpoint()
    run.now += 1000.0
    run.lose_coordinator()
    assert run.status.running_seconds == 1000.0
    run.start().checkpoint()
    assert (run.status.running_seconds, run.status.completed_checkpoints) == (1000.0, 2)


def test_job_that_first_runs_after_its_coordinator_came_back_is_counted_from_then(tmp_path):
    early = Run(tmp_path)
    early.now += 10.0
    early.lose_coordinator()
    assert early.status.running_seconds == 0.0
    early.now += 10.0
    early.start()
    assert early.memory.record.running_since == early.now
    early.now += 1.0
    assert early.status.running_seconds == 1.0


def plan_of(sink, **config):
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).named("count").write(sink)
    settings = changed(ef.JobConfig(parallelism=2, key_groups=4), **config)
    return flow.plan(config=settings), settings


def test_recovered_coordinator_has_the_checkpoints_workers_and_tables_and_a_later_attempt(tmp_path):
    plan, config = plan_of(ef.to_list([], name="out"), checkpoint={"dir": str(tmp_path)})
    wider = rescale(plan, plan.stage_of("count"), 3, plan.tables).plan
    groups = [2, 2, 0, 1]
    checkpoints = Checkpoints()
    checkpoints.begin(0.0, "by hand")
    checkpoints.pending.prepared = {task.name: TaskEntry([]) for task in wider.tasks}
    manifest = checkpoints.manifest(wider, 7, 0.0, {"count": RoutingTable(np.array(groups, np.uint16))})
    assert SavedState(config.checkpoint.url("f"), 3, RunClaim("run")).complete(manifest) is None
    point = JobStorage(plan, config, claim=RunClaim("run")).restore_point(takes_over=True)
    assert (point.manifest.checkpoint, point.takes_over, point.from_savepoint, point.last) == (1, True, False, 1)
    assert point.attempt > 7
    core = JobCore(plan, config, point)
    core.begin(0.0)
    warning, restore = core.effects()
    assert "its coordinator was lost" in warning.text
    assert (restore.manifest, restore.attempt) == (point.manifest, core.attempt)
    assert core.attempt > 7
    assert core.plan.stage_of("count").parallelism == 3
    assert core.plan.tables["count"].groups.tolist() == groups


def test_coordinator_that_was_taken_for_lost_leaves_what_the_next_one_has_prepared_alone(tmp_path):
    sink = ef.write_parquet(tmp_path / "out")
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).write(sink)
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints")))
    plan = flow.plan(config=config)
    sink.start()
    memory = RunMemory()
    lost, back = (JobStorage(plan, config, claim=RunClaim("run"), memory=memory) for _ in range(2))
    before = JobCore(plan, config, lost.restore_point())
    before.begin(0.0)
    after = JobCore(plan, config, back.restore_point(takes_over=True))
    after.begin(0.0)
    (late,), (_, restore) = before.effects(), after.effects()
    assert restore.attempt > late.attempt
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"item": [1]})))
    prepared = writer.prepare(1)
    with pytest.raises(SupersededError):
        lost.perform(late, lambda answer: None)
    sink.commit(1, prepared)
    assert pq.read_table(tmp_path / "out").to_pylist() == [{"item": 1}]
    assert back.perform(restore, lambda answer: None).error is None
    sink.stop()


def test_settings_that_were_changed_hold_after_the_coordinator_came_back(tmp_path):
    run = Run(tmp_path).start()
    run.job.ask(ChangeSettings({"checkpoint.interval": "5s", "autoscale.policy": Ds2(min_change=2)}))
    run.lose_coordinator()
    config = run.job.core.record.config
    assert (config.checkpoint.interval, config.autoscale.policy) == ("5s", Ds2(min_change=2))
    run.start()
    run.now += 5.0
    run.job.tick()
    assert run.job.core.checkpoints.pending is not None
