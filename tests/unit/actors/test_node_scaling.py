"""Nodes that come to a job and go, where the workers are fakes: which operators get more or fewer, who is replaced, and what is refused."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.actors.node_scaling import NodeScalingState
from evenflow.actors.supervisor import Supervisor
from evenflow.engine.errors import JobError, RequestError
from evenflow.engine.protocol.effects import Finished, Prepared
from evenflow.scheduler.job_effects import JobState, Redeploy, Retire, Spawn
from evenflow.scheduler.messages import Attach, Attached, BeginCheckpoint, Detach
from evenflow.scheduler.placement import Node, NoRoomError, Place
from evenflow.scheduler.window import WorkerWindow
from evenflow.testing.settings import changed


class Cluster:
    """Nodes with 4 slots each; a new worker goes to the first node that may be used."""

    def __init__(self, names, places):
        self.names, self.where = names, dict(places)
        self.avoided, self.preferred, self.extra, self.ready = set(), (), 0, True
        self.asked, self.full = [], False

    def nodes(self):
        on = list(self.where.values())
        return [Node(name, 4, 4 - on.count(name), on.count(name)) for name in self.names]

    def places(self):
        return {worker: Place(worker, node) for worker, node in self.where.items()}

    def avoid(self, nodes):
        self.avoided = set(nodes)

    def prefer(self, nodes):
        self.preferred = tuple(nodes)

    def reserve(self, count):
        if count and self.full:
            raise NoRoomError(count, count, 1.0, self.nodes())
        self.extra = count

    def reserved(self):
        return self.ready

    def ask(self, workers):
        self.asked.append(workers)

    def start(self, worker):
        self.where[worker] = next(name for name in self.preferred or self.names if name not in self.avoided)


class Job:
    """generate (1 worker) -> work (3) -> out (1), with the workers at `places`."""

    def __init__(self, names, places, folder=None, **settings):
        flow = ef.Dataflow("f")
        rows = flow.read(ef.generate(rate=1_000))
        work = rows.map(lambda row: row).named("work").parallelism(3)
        work.filter(lambda row: True).named("out").parallelism(1).write(ef.to_list([], name="to_list"))
        saves = None if folder is None else str(folder)
        config = changed(
            ef.JobConfig(
                worker=ef.WorkerConfig(cpus=1.0),
                checkpoint=ef.CheckpointConfig(saves, interval=None),
                metrics=ef.MetricsConfig(window="1s"),
            ),
            **settings,
        )
        self.told, self.changes = [], []
        self.cluster = None if places is None else Cluster(names, places)
        plan = flow.plan(config=config)
        tell = lambda worker, command: self.told.append((worker, command))  # noqa: E731
        self.supervisor = Supervisor(plan, config, tell, self.changes.append, cluster=self.cluster)
        for task in plan.tasks:
            self.supervisor.ready(task.name, 0)

    @property
    def report(self):
        return self.supervisor.node_scalings()[-1]

    def look(self, **useful):
        """Nothing moves for as long as it takes, everybody measures, and the policy looks; the newest decision."""
        for now in (1_000.0, 1_010.0, 1_020.0):
            self.supervisor.autoscaling.tick(now)
            self.measure(now, **useful)
        self.supervisor.autoscaling.tick(1_030.0)
        return self.supervisor.decisions()[-1]

    def measure(self, begun=0.0, **useful):
        """Windows of a second in which the workers of each operator processed 1,000 records together."""
        for worker in self.supervisor.core.workers:
            stage = worker.rpartition("-")[0]
            count = self.supervisor.core.plan.stage_of(stage).parallelism
            rows = 1_000 // count
            window = WorkerWindow(worker, begun, 1.0, rows_in=rows, rows_out=rows, useful=useful.get(stage, 0.1))
            self.supervisor.report(worker, window)

    def go_on(self):
        """Everybody does at once what they are told, until nothing changes any more."""
        for _ in range(50):
            while self.changes:
                self.carry(self.changes.pop(0))
            while self.told:
                self.answer(*self.told.pop(0))
            self.supervisor.tick()

    def carry(self, change):
        core = self.supervisor.core
        if isinstance(change, Spawn):
            for worker in change.workers:
                self.cluster.start(worker)
                self.supervisor.ready(worker, core.attempt)
        elif isinstance(change, Retire):
            for worker in change.workers:
                self.cluster.where.pop(worker, None)
        else:
            assert isinstance(change, Redeploy)
            for worker in core.workers:
                if self.cluster.where.get(worker) in self.cluster.avoided:
                    self.cluster.start(worker)
            for worker in core.workers:
                self.supervisor.ready(worker, change.attempt)

    def answer(self, worker, command):
        report = self.supervisor.report
        if isinstance(command, (Attach, Detach)):
            report(worker, Attached(command.token))
            leaving = self.supervisor.core.rescaling
            if isinstance(command, Detach) and command.outputs and leaving is not None:
                for name in leaving.rescale.leaving:
                    report(name, Finished({}))
        elif isinstance(command, BeginCheckpoint):
            for name in self.supervisor.core.workers:
                report(name, Prepared(command.checkpoint, {}))


PLACES = {"generate-0": "a", "work-0": "b", "work-1": "b", "work-2": "c", "out-0": "a"}


def test_the_node_with_the_lowest_sum_is_given_back_and_nobody_is_replaced_who_need_not_be():
    job = Job("abc", PLACES)
    job.measure()
    assert job.supervisor.scale_in() == 0
    assert job.cluster.avoided == {"c"}
    job.go_on()
    report = job.report
    assert (report.state, report.removed, dict(report.parallelism), report.replaced) == (NodeScalingState.DONE, "c", {"work": (3, 2)}, ())
    assert "c" not in job.cluster.where.values()
    assert job.cluster.avoided == {"c"}, "it stays given back"


def test_workers_whose_number_stays_are_replaced_through_a_checkpoint(tmp_path):
    job = Job("abc", {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"}, tmp_path)
    job.measure()
    job.supervisor.scale_in()
    assert job.report.replaced == ("generate-0",)
    job.cluster.ready = False
    job.go_on()
    assert (job.report.state, job.cluster.extra) == (NodeScalingState.STARTING, 1)
    job.cluster.ready = True
    job.go_on()
    assert (job.report.state, job.report.problem) == (NodeScalingState.DONE, None)
    assert job.supervisor.core.state is JobState.RUNNING
    assert job.supervisor.core.attempt == 1
    assert job.cluster.where["generate-0"] == "a"
    assert job.cluster.extra == 0


def test_without_checkpoints_another_node_is_given_back_if_one_can_be_and_else_the_error_says_why():
    job = Job("abc", {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"})
    job.measure()
    job.supervisor.scale_in()
    assert job.report.removed == "b", "though the sum of c is lower"
    job = Job("abc", {"generate-0": "c", "work-0": "a", "work-1": "a", "work-2": "a", "out-0": "b"})
    job.measure()
    with pytest.raises(JobError, match=r"-0 on node . can't leave, since one worker of each operator stays; with CheckpointConfig\(dir="):
        job.supervisor.scale_in()


def test_a_node_is_not_given_back_where_there_is_no_room_for_those_that_are_replaced(tmp_path):
    job = Job("ac", {"generate-0": "c", "work-0": "a", "work-1": "a", "work-2": "a", "out-0": "a"}, tmp_path)
    job.cluster.full = True
    job.measure()
    job.supervisor.scale_in()
    job.go_on()
    assert job.report.state is NodeScalingState.FAILED
    assert "no room for 1 of 1 worker" in job.report.problem
    assert job.cluster.avoided == set(), "the job uses it on"
    assert job.supervisor.core.state is JobState.RUNNING


def test_a_node_more_gets_workers_of_the_congested_operator_as_many_as_it_has_slots():
    job = Job("abc", {"generate-0": "a", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"})
    job.measure(work=1.0)
    for _ in range(3):
        job.supervisor.report("work-0", WorkerWindow("work-0", 1.0, 1.0, rows_in=50, rows_out=50, useful=1.0))
    job.supervisor.scale_out(1)
    job.go_on()
    report = job.report
    assert (report.state, report.added) == (NodeScalingState.DONE, ("c",))
    before, after = report.parallelism["work"]
    assert before == 3 < after <= 7
    assert [job.cluster.where[f"work-{i}"] for i in range(3, after)] == ["c"] * (after - 3)
    assert job.cluster.preferred == ()


def test_no_node_is_added_where_nothing_is_congested_or_none_has_room():
    job = Job("abc", PLACES | {"work-2": "b"})
    job.measure()
    with pytest.raises(JobError, match="is given no node: no operator is congested that may have more workers"):
        job.supervisor.scale_out(1)
    with pytest.raises(JobError, match="1 of 2 nodes that it has no workers on have room"):
        job.supervisor.scale_out(2)
    assert job.cluster.asked == [4]


def test_one_thing_at_a_time():
    job = Job("abc", PLACES)
    job.measure()
    job.supervisor.scale_in()
    with pytest.raises(JobError, match="scales or moves something already"):
        job.supervisor.scale_in()
    with pytest.raises(JobError, match="its nodes are being scaled"):
        job.supervisor.scale("work", 2, None)
    job.go_on()
    job.supervisor.scale("work", 1, None)


def test_a_job_on_one_node_keeps_it_and_one_without_nodes_says_so():
    job = Job("a", dict.fromkeys(PLACES, "a"))
    with pytest.raises(JobError, match="can't give a node back: its workers are on 1, and one has to stay"):
        job.supervisor.scale_in()
    with pytest.raises(RequestError, match="can't be given 0 nodes"):
        job.supervisor.scale_out(0)
    with pytest.raises(JobError, match="runs in one process and has no nodes"):
        Job("", None).supervisor.scale_in()


def test_a_job_that_loses_a_worker_meanwhile_goes_on_without_the_node(tmp_path):
    job = Job("abc", {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"}, tmp_path)
    job.measure()
    job.supervisor.scale_in()
    job.cluster.ready = False
    job.go_on()
    job.supervisor.lost("work-1", "it was killed")
    job.go_on()
    assert (job.report.state, job.report.problem) == (NodeScalingState.DONE, None)
    assert job.cluster.where["generate-0"] == "a"


def test_a_job_that_ends_meanwhile_ends_it():
    job = Job("abc", PLACES)
    job.measure()
    job.supervisor.scale_in()
    job.supervisor.cancel()
    job.go_on()
    assert (job.report.state, job.report.problem) == (NodeScalingState.FAILED, "the job has ended")


def test_a_node_that_the_policy_names_is_given_back_by_itself():
    job = Job("abc", PLACES, autoscale={"policy": "stela", "settings": {"remove_nodes": 1}, "interval": 10.0})
    assert job.look().decided.remove_node == "c"
    job.go_on()
    job.supervisor.autoscaling.tick(1_040.0)
    assert job.supervisor.decisions()[-1].done.startswith("carried out in ")
    assert (job.report.state, job.report.removed) == (NodeScalingState.DONE, "c")
    assert "c" not in job.cluster.where.values()


def test_a_node_that_can_not_be_given_back_is_no_end_of_the_policy():
    places = {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"}
    job = Job("abc", places, autoscale={"policy": "stela", "settings": {"remove_nodes": 1}, "interval": 10.0})
    decision = job.look()
    assert decision.decided.remove_node == "c"
    assert decision.done.startswith("refused: giving node c back: job `f`: generate-0 on node c can't leave")
    assert job.supervisor.autoscaling.policy == "stela"


def test_workers_that_a_policy_adds_with_a_node_go_to_one_that_the_job_is_not_on():
    job = Job("abcd", PLACES, autoscale={"policy": "stela", "settings": {"add_nodes": 1}, "interval": 10.0})
    decision = job.look(work=3.0)
    assert decision.decided.add_nodes == 1
    assert job.cluster.preferred == ("d",)
    job.go_on()
    job.supervisor.autoscaling.tick(1_040.0)
    before, after = 3, decision.decided.parallelism["work"]
    assert {job.cluster.where[f"work-{i}"] for i in range(before, after)} == {"d"}
    assert job.cluster.preferred == ()


def test_a_node_that_is_not_there_is_asked_for():
    job = Job("abc", PLACES, autoscale={"policy": "stela", "settings": {"add_nodes": 1}, "interval": 10.0})
    job.look(work=3.0)
    assert job.cluster.asked == [1]
