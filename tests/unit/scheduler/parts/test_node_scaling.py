"""Nodes that join and leave a job with fake workers: the operators that get more or fewer, the replaced workers, and rejected
requests.
"""

from __future__ import annotations

import pytest
from acting_job import ActingJob

import evenflow as ef
from evenflow.engine.errors import JobError, RequestError
from evenflow.scheduler.load.wait import WaitKind
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.controller import DecisionRecord
from evenflow.scheduler.policies.nodes.placement import ClusterNode, ClusterView, NoRoomError, WorkerPlace
from evenflow.scheduler.protocol.effects import AskForRoom, JobState, LeaveNode, Reserve, Retire, UseNodes, Warn
from evenflow.scheduler.protocol.reports import CheckpointReport, CheckpointState, NodeScalingReport, NodeScalingState
from evenflow.scheduler.protocol.requests import Cancel, Scale, ScaleIn, ScaleOut, ShowHistory, ShowStatus
from evenflow.testing.settings import changed


class Cluster:
    """Nodes with 4 slots each; a new worker goes to the first node that may be used."""

    def __init__(self, names, places):
        self.names, self.where = names, dict(places)
        self.avoided, self.preferred, self.extra, self.ready = frozenset(), frozenset(), 0, True
        self.asked, self.full, self.draining, self.seconds_left = [], False, (), {}
        self.starting, self.home = False, None

    def nodes(self):
        on = list(self.where.values())
        return tuple(ClusterNode(name, 4, 4 - on.count(name), on.count(name)) for name in self.names)

    def view(self):
        places = {worker: WorkerPlace(worker, node) for worker, node in self.where.items()}
        nodes = tuple(node for node in self.nodes() if node.name not in self.draining)
        return ClusterView(nodes, places, self.ready, self.draining, self.seconds_left, self.starting, self.home)

    def reserve(self, workers):
        if workers and self.full:
            raise NoRoomError([{"CPU": 1.0}] * len(workers), len(workers), self.nodes())
        self.extra = len(workers)

    def start(self, worker):
        self.where[worker] = next(name for name in sorted(self.preferred) or self.names if name not in self.avoided)


class Job(ActingJob):
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
        self.cluster = None if places is None else Cluster(names, places)
        super().__init__(flow.plan(config=config), config)

    def view(self):
        return None if self.cluster is None else self.cluster.view()

    @property
    def newest(self):
        return self.ask(ShowHistory(NodeScalingReport))[-1]

    @property
    def decision(self):
        return self.ask(ShowHistory(DecisionRecord))[-1]

    def look(self, **useful):
        """Let time pass without moves, with measurements, until the policy observes. Return the newest decision."""
        for seconds in (0.0, 10.0, 10.0):
            self.tick(seconds)
            self.measure(self.now, **useful)
        self.tick(10.0)
        return self.decision

    def measure(self, begun=0.0, **useful):
        """Report windows of a second in which the workers of each operator processed 1,000 records together."""
        for worker in self.core.workers:
            stage = worker.rpartition("-")[0]
            rows = 1_000 // self.core.plan.stage_of(stage).parallelism
            window = WorkerWindow(worker, begun, 1.0, rows_in=rows, rows_out=rows, useful=useful.get(stage, 0.1))
            self.report(worker, window)

    def go_on(self):
        """Carry out all commands, until nothing changes any more."""
        for _ in range(50):
            self.settle()
            self.tick(0.1)
        self.settle()

    @property
    def leaves(self):
        """True if the coordinator has left its node."""
        return any(isinstance(effect, LeaveNode) for effect in self.done)

    def until_it_leaves(self):
        """Carry out all commands until the coordinator leaves its node, after which nothing else happens to it."""
        for _ in range(50):
            self.settle()
            if self.leaves:
                return
            self.tick(0.1)
        raise AssertionError(self.newest)

    def carry_out(self, effect):
        cluster = self.cluster
        if isinstance(effect, UseNodes):
            cluster.avoided, cluster.preferred = effect.avoid, effect.prefer
        elif isinstance(effect, AskForRoom):
            cluster.asked.append(effect.nodes)
        elif isinstance(effect, Reserve):
            try:
                cluster.reserve(effect.workers)
            except NoRoomError as error:
                self.core.not_reserved(str(error), self.now)
        elif isinstance(effect, Retire):
            for worker in effect.workers:
                cluster.where.pop(worker, None)
        super().carry_out(effect)

    def start(self, worker, attempt):
        if self.cluster is not None and self.cluster.where.get(worker, "") in {"", *self.cluster.avoided}:
            self.cluster.start(worker)
        super().start(worker, attempt)


PLACES = {"generate-0": "a", "work-0": "b", "work-1": "b", "work-2": "c", "out-0": "a"}


def test_the_node_with_the_lowest_sum_is_given_back_with_no_needless_replacement():
    job = Job("abc", PLACES)
    job.measure()
    assert job.ask(ScaleIn()) == 0
    assert job.cluster.avoided == {"c"}
    job.go_on()
    report = job.newest
    assert (report.state, report.removed, dict(report.parallelism), report.replaced) == (NodeScalingState.DONE, "c", {"work": (3, 2)}, ())
    assert "c" not in job.cluster.where.values()
    assert job.cluster.avoided == {"c"}, "it stays given back"


def test_workers_whose_number_stays_are_replaced_through_a_checkpoint(tmp_path):
    job = Job("abc", {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"}, tmp_path)
    job.measure()
    job.ask(ScaleIn())
    assert job.newest.replaced == ("generate-0",)
    job.cluster.ready = False
    job.go_on()
    assert (job.newest.state, job.cluster.extra) == (NodeScalingState.STARTING, 1)
    job.cluster.ready = True
    job.go_on()
    assert (job.newest.state, job.newest.problem) == (NodeScalingState.DONE, None)
    assert job.core.state is JobState.RUNNING
    assert job.core.attempt == 1
    assert job.cluster.where["generate-0"] == "a"
    assert job.cluster.extra == 0


def test_without_checkpoints_another_node_is_released_if_possible_else_the_error_says_why():
    job = Job("abc", {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"})
    job.measure()
    job.ask(ScaleIn())
    assert job.newest.removed == "b", "though the sum of c is lower"
    job = Job("abc", {"generate-0": "c", "work-0": "a", "work-1": "a", "work-2": "a", "out-0": "b"})
    job.measure()
    with pytest.raises(JobError, match=r"-0 on node . can't leave, since one worker of each operator stays; with CheckpointConfig\(dir="):
        job.ask(ScaleIn())


def test_a_node_is_not_given_back_where_there_is_no_room_for_those_that_are_replaced(tmp_path):
    job = Job("ac", {"generate-0": "c", "work-0": "a", "work-1": "a", "work-2": "a", "out-0": "a"}, tmp_path)
    job.cluster.full = True
    job.measure()
    job.ask(ScaleIn())
    job.go_on()
    assert job.newest.state is NodeScalingState.FAILED
    assert "no room for 1 of 1 worker" in job.newest.problem
    assert job.cluster.avoided == frozenset(), "the job uses it on"
    assert job.core.state is JobState.RUNNING


def test_a_node_is_not_given_back_if_the_processes_on_others_do_not_start_in_time(tmp_path):
    job = Job(
        "abc", {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"}, tmp_path, worker={"start_timeout": "1m"}
    )
    job.measure()
    job.ask(ScaleIn())
    job.cluster.ready = False
    job.go_on()
    job.tick(61.0)
    assert (job.newest.state, job.newest.problem) == (
        NodeScalingState.FAILED,
        "the processes for generate-0 did not start within 1m",
    )
    assert (job.cluster.extra, job.cluster.avoided) == (0, frozenset())


def test_an_added_node_gets_a_worker_of_the_congested_operator_for_each_slot():
    job = Job("abc", {"generate-0": "a", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"})
    job.measure(work=1.0)
    for _ in range(3):
        job.report("work-0", WorkerWindow("work-0", 1.0, 1.0, rows_in=50, rows_out=50, useful=1.0))
    job.ask(ScaleOut(1))
    job.go_on()
    report = job.newest
    assert (report.state, report.added) == (NodeScalingState.DONE, ("c",))
    before, after = report.parallelism["work"]
    assert before == 3 < after <= 7
    assert [job.cluster.where[f"work-{i}"] for i in range(3, after)] == ["c"] * (after - 3)
    assert job.cluster.preferred == frozenset()


def test_round_robin_gives_new_workers_to_operators_in_turn_though_only_one_is_congested():
    job = Job("abc", {"generate-0": "a", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"})
    job.measure(work=1.0)
    job.ask(ScaleOut(1, "round_robin"))
    job.go_on()
    assert dict(job.newest.parallelism) == {"out": (1, 2), "work": (3, 4), "generate": (1, 3)}
    assert "in turn" in job.newest.reason


def test_round_robin_gives_the_node_with_the_first_name_back_whatever_its_workers_do(tmp_path):
    job = Job("abc", PLACES, tmp_path)
    job.measure()
    job.ask(ScaleIn("round_robin"))
    job.go_on()
    assert (job.newest.state, job.newest.removed) == (NodeScalingState.DONE, "a")


@pytest.mark.parametrize("request_", [ScaleOut(1, "magic"), ScaleIn("magic")])
def test_an_unknown_node_policy_is_refused_with_the_names_of_all(request_):
    job = Job("abc", PLACES)
    job.measure()
    with pytest.raises(RequestError, match="'magic' is not a node policy: use one of stela, round_robin"):
        job.ask(request_)


def test_no_node_is_added_where_nothing_is_congested_or_none_has_room():
    job = Job("abc", PLACES | {"work-2": "b"})
    job.measure()
    with pytest.raises(JobError, match="is given no node: no operator is congested that may have more workers"):
        job.ask(ScaleOut(1))
    with pytest.raises(JobError, match="is given no node: no operator is congested"):
        job.ask(ScaleOut(2))
    assert job.cluster.asked == [], "no node is started that no operator needs"


def node_waits(job):
    return [wait for wait in job.ask(ShowStatus()).waits_for if wait.kind is WaitKind.NODE]


def congested(*folder, **settings):
    """Return a job on all of its three nodes whose operator `work` needs more workers."""
    job = Job("abc", PLACES, *folder, **settings)
    job.measure(work=1.0)
    for _ in range(3):
        job.report("work-0", WorkerWindow("work-0", 1.0, 1.0, rows_in=50, rows_out=50, useful=1.0))
    return job


def test_nodes_that_are_not_there_are_asked_for_and_waited_for_and_the_status_says_so():
    job = congested()
    job.ask(ScaleOut(1))
    job.tick(2.0)
    assert (job.newest.state, job.cluster.asked) == (NodeScalingState.WAITING, [1, 1])
    (wait,) = node_waits(job)
    assert (wait.kind, wait.seconds) == (WaitKind.NODE, 2.0)
    assert "0 of 1 nodes that it has no workers on have room; Ray's autoscaler, if there is one, was asked for 1 node 2 s ago" in wait.text
    job.cluster.names = "abcd"
    job.go_on()
    report = job.newest
    assert (report.state, report.added) == (NodeScalingState.DONE, ("d",))
    before, after = report.parallelism["work"]
    assert [job.cluster.where[f"work-{i}"] for i in range(before, after)] == ["d"] * (after - before)
    assert job.cluster.asked[-1] == 0, "the request is withdrawn"
    assert node_waits(job) == []


def test_nodes_that_do_not_come_are_refused_after_a_while_and_no_longer_asked_for():
    job = congested()
    job.ask(ScaleOut(2))
    job.tick(11.0)
    assert job.newest.state is NodeScalingState.WAITING
    job.tick(2.0)
    assert job.newest.state is NodeScalingState.FAILED
    assert "0 of 2 nodes" in job.newest.problem
    assert "brought no more within 13 s, and is no longer asked" in job.newest.problem
    assert job.cluster.asked[-1] == 0
    assert job.core.state is JobState.RUNNING


def test_nodes_that_start_are_waited_for_until_the_start_timeout_is_over():
    job = congested(worker={"start_timeout": "1m"})
    job.ask(ScaleOut(1))
    job.cluster.starting = True
    for _ in range(6):
        job.tick(10.0)
        assert job.newest.state is NodeScalingState.WAITING
    job.tick(10.0)
    assert (job.newest.state, job.cluster.asked[-1]) == (NodeScalingState.FAILED, 0)


def test_a_node_that_goes_before_it_has_workers_is_replaced_by_another():
    job = congested()
    job.cluster.names = "abcd"
    job.ask(ScaleOut(1))
    job.tick(0.1)
    assert job.cluster.preferred == {"d"}
    job.cluster.names = "abc"
    job.not_spawned("no room")
    job.go_on()
    assert (job.newest.state, job.cluster.preferred, job.cluster.asked[-1]) == (NodeScalingState.WAITING, frozenset(), 1)
    assert [effect.text for effect in job.done if isinstance(effect, Warn)] == [
        "node d has gone before it had workers; scaling out waits for another"
    ]
    job.cluster.names = "abce"
    job.go_on()
    assert (job.newest.state, job.newest.added) == (NodeScalingState.DONE, ("e",))
    assert "e" in job.cluster.where.values()


def test_a_node_that_stays_but_gets_no_workers_fails_the_scaling():
    job = congested()
    job.cluster.names = "abcd"
    job.ask(ScaleOut(1))
    job.tick(0.1)
    job.not_spawned("they are out of order")
    job.go_on()
    assert job.newest.state is NodeScalingState.FAILED
    assert "they are out of order" in job.newest.problem


def test_workers_that_reserve_nothing_bring_no_nodes_so_too_few_are_refused_at_once():
    job = congested(worker={"cpus": 0.0})
    with pytest.raises(JobError, match=r"0 of 1 nodes .* WorkerConfig\(cpus=...\), 0 now, would let Ray's autoscaler know of them"):
        job.ask(ScaleOut(1))
    assert job.cluster.asked == []


def test_a_node_that_drains_comes_before_nodes_that_are_waited_for(tmp_path):
    job = congested(tmp_path)
    job.ask(ScaleOut(1))
    job.cluster.draining = ("b",)
    job.go_on()
    waited, drained = job.ask(ShowHistory(NodeScalingReport))
    assert (waited.state, drained.state, drained.removed) == (NodeScalingState.FAILED, NodeScalingState.DONE, "b")
    assert "Ray drains node b" in waited.problem
    assert 0 in job.cluster.asked


def test_one_node_scaling_runs_at_a_time():
    job = Job("abc", PLACES)
    job.measure()
    job.ask(ScaleIn())
    with pytest.raises(JobError, match="scales or moves something already"):
        job.ask(ScaleIn())
    with pytest.raises(JobError, match="its nodes are being scaled"):
        job.ask(Scale("work", 2))
    job.go_on()
    job.ask(Scale("work", 1))


def test_a_job_on_one_node_keeps_it_and_one_without_nodes_says_so():
    job = Job("a", dict.fromkeys(PLACES, "a"))
    with pytest.raises(JobError, match="can't give a node back: its workers are on 1, and one has to stay"):
        job.ask(ScaleIn())
    with pytest.raises(RequestError, match="can't be given 0 nodes"):
        job.ask(ScaleOut(0))
    with pytest.raises(JobError, match="runs in one process and has no nodes"):
        Job("", None).ask(ScaleIn())


def test_a_job_that_loses_a_worker_meanwhile_goes_on_without_the_node(tmp_path):
    job = Job("abc", {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"}, tmp_path)
    job.measure()
    job.ask(ScaleIn())
    job.cluster.ready = False
    job.go_on()
    job.lost("work-1", "it was killed")
    job.go_on()
    assert (job.newest.state, job.newest.problem) == (NodeScalingState.DONE, None)
    assert job.cluster.where["generate-0"] == "a"


def test_the_end_of_the_job_ends_a_node_scaling():
    job = Job("abc", PLACES)
    job.measure()
    job.ask(ScaleIn())
    job.ask(Cancel())
    job.go_on()
    assert (job.newest.state, job.newest.problem) == (NodeScalingState.FAILED, "the job has ended")


def test_a_node_that_the_policy_names_is_given_back_automatically():
    job = Job("abc", PLACES, autoscale={"policy": ef.Stela(remove_nodes=1), "mode": "act", "interval": 10.0})
    assert job.look().decided.remove_node == "c"
    job.go_on()
    assert job.decision.done.startswith("carried out in ")
    assert (job.newest.state, job.newest.removed) == (NodeScalingState.DONE, "c")
    assert "c" not in job.cluster.where.values()


def test_a_node_that_can_not_be_given_back_is_no_end_of_the_policy():
    places = {"generate-0": "c", "work-0": "a", "work-1": "b", "work-2": "b", "out-0": "a"}
    job = Job("abc", places, autoscale={"policy": ef.Stela(remove_nodes=1), "mode": "act", "interval": 10.0})
    decision = job.look()
    assert decision.decided.remove_node == "c"
    assert decision.done.startswith("refused: giving node c back: job `f`: generate-0 on node c can't leave")
    assert job.core.autoscaling.policy == "stela"


def test_workers_that_a_policy_adds_with_a_node_go_to_one_that_the_job_is_not_on():
    job = Job("abcd", PLACES, autoscale={"policy": ef.Stela(add_nodes=1), "mode": "act", "interval": 10.0})
    decision = job.look(work=3.0)
    assert decision.decided.add_nodes == 1
    assert job.cluster.preferred == {"d"}
    job.go_on()
    before, after = 3, decision.decided.parallelism["work"]
    assert {job.cluster.where[f"work-{i}"] for i in range(before, after)} == {"d"}
    assert job.cluster.preferred == frozenset()


def test_a_node_that_is_not_there_is_asked_for():
    job = Job("abc", PLACES, autoscale={"policy": ef.Stela(add_nodes=1), "mode": "act", "interval": 10.0})
    job.look(work=3.0)
    assert job.cluster.asked == [1]


def test_all_workers_of_a_node_that_drains_continue_on_others_through_a_checkpoint(tmp_path):
    job = Job("abc", PLACES, tmp_path)
    job.measure()
    job.cluster.draining = ("b",)
    job.go_on()
    report = job.newest
    assert (report.state, report.removed, report.replaced) == (NodeScalingState.DONE, "b", ("work-0", "work-1"))
    assert (dict(report.parallelism), report.reason) == ({}, "Ray drains it")
    assert "b" not in job.cluster.where.values()
    assert (job.core.state, job.core.attempt) == (JobState.RUNNING, 1)


def test_a_node_that_drains_is_emptied_once_another_has_room(tmp_path):
    job = Job("abc", PLACES, tmp_path)
    job.measure()
    job.cluster.draining, job.cluster.full = ("b",), True
    job.go_on()
    assert (job.newest.state, job.cluster.where["work-0"]) == (NodeScalingState.FAILED, "b")
    job.cluster.full = False
    job.tick(5.0)
    job.go_on()
    assert job.newest.state is NodeScalingState.DONE
    assert "b" not in job.cluster.where.values()


def test_a_drain_waits_for_a_change_under_way(tmp_path):
    job = Job("abc", PLACES, tmp_path)
    job.measure()
    job.ask(Scale("work", 4))
    job.cluster.draining = ("b",)
    job.tick(0.1)
    assert job.ask(ShowHistory(NodeScalingReport)) == []
    job.go_on()
    assert job.newest.replaced == ("work-0", "work-1")


def test_without_checkpoints_some_workers_leave_a_draining_node_and_a_warning_names_the_others():
    job = Job("abc", PLACES)
    job.measure()
    job.cluster.draining = ("a", "c")
    job.go_on()
    assert (job.newest.removed, dict(job.newest.parallelism)) == ("c", {"work": (3, 2)})
    (warning,) = [effect.text for effect in job.done if isinstance(effect, Warn)]
    assert "Ray drains node a, on which workers of the job stay until it goes" in warning
    assert "generate-0, out-0 on node a can't leave" in warning


def drained(tmp_path, left, *, saves=True, **settings):
    """Return a job on whose node b Ray has set a deadline in `left` seconds, and that finds no room elsewhere."""
    job = Job("abc", PLACES, tmp_path if saves else None, **settings)
    job.measure()
    job.cluster.full, job.cluster.draining, job.cluster.seconds_left = True, ("b",), {"b": left}
    return job


def pass_time(job, seconds):
    """Let seconds pass, one after the other, while the deadlines of drained nodes come closer."""
    for _ in range(seconds):
        job.cluster.seconds_left = {node: left - 1.0 for node, left in job.cluster.seconds_left.items()}
        job.tick(1.0)
        job.settle()


def checkpoints(job):
    return [report.reason for report in job.ask(ShowHistory(CheckpointReport))]


def test_a_job_that_can_not_leave_a_node_in_time_takes_checkpoints_before_it_goes(tmp_path):
    job = drained(tmp_path, 60.0)
    job.tick()
    pass_time(job, 29)
    assert checkpoints(job) == []
    pass_time(job, 2)
    assert checkpoints(job) == ["node b, which Ray drains, goes in 30 s"]
    pass_time(job, 29)
    assert [reason.partition("goes in ")[2] for reason in checkpoints(job)] == ["30 s", "15 s", "7 s", "3 s", "1 s"]
    (warning,) = [effect.text for effect in job.done if isinstance(effect, Warn)]
    assert "node b, which Ray drains, goes in 30 s, and the job is not off it yet. It takes a checkpoint now" in warning


def test_the_status_names_the_node_that_the_job_is_leaving_with_its_deadline(tmp_path):
    job = drained(tmp_path, 60.0)
    job.tick()
    pass_time(job, 10)
    (wait,) = node_waits(job)
    assert (wait.kind, wait.seconds) == (WaitKind.NODE, 10.0)
    assert wait.text.startswith(
        "the job is leaving node b, which Ray drains. It goes in 50 s. The last try has failed: no room for 2 of 2 workers"
    )
    pass_time(job, 21)
    (wait,) = node_waits(job)
    assert "It goes in 29 s. A checkpoint was taken for it." in wait.text
    job.cluster.full = False
    pass_time(job, 6)
    job.go_on()
    assert node_waits(job) == []


def test_a_drain_without_a_deadline_or_without_saved_state_takes_no_checkpoint(tmp_path):
    job = drained(tmp_path, 60.0)
    job.cluster.seconds_left = {}
    job.tick()
    pass_time(job, 100)
    assert checkpoints(job) == []
    job = drained(tmp_path, 60.0, saves=False)
    job.tick()
    pass_time(job, 60)
    assert checkpoints(job) == []


def test_a_coordinator_leaves_a_node_that_drains_after_a_checkpoint(tmp_path):
    job = Job("abc", PLACES, tmp_path)
    job.measure()
    job.cluster.home, job.cluster.draining, job.cluster.ready = "b", ("b",), False
    job.go_on()
    assert job.newest.state is NodeScalingState.STARTING, "room for its workers comes first"
    job.cluster.ready = True
    job.until_it_leaves()
    assert job.ask(ShowHistory(CheckpointReport))[-1].state is CheckpointState.COMPLETE
    assert job.core.attempt == 0, "the next coordinator begins the attempt"


def test_a_coordinator_leaves_a_node_without_workers_once_there_is_another(tmp_path):
    job = Job("abcd", PLACES, tmp_path)
    job.measure()
    job.cluster.home, job.cluster.draining = "d", ("a", "b", "c", "d")
    job.cluster.full = True
    job.go_on()
    assert not job.leaves
    job.cluster.full, job.cluster.draining = False, ("d",)
    job.tick(5.0)
    job.until_it_leaves()


def test_a_coordinator_stays_on_a_node_that_is_only_given_back(tmp_path):
    job = Job("abc", PLACES, tmp_path)
    job.measure()
    job.cluster.home = "c"
    job.ask(ScaleIn())
    job.go_on()
    assert (job.newest.state, job.newest.removed) == (NodeScalingState.DONE, "c")
    assert not job.leaves
