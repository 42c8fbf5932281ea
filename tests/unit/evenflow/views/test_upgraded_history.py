"""A page's history of a job whose code is upgraded: colours by version, workers with one index, the upgrade and its mark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from shown_upgrades import PROBLEM, WATCHED, rolled_back, upgrade_report

from evenflow.engine.protocol.ids import index_of
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.nodes.placement import ClusterNode, ClusterView, WorkerPlace
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import MigrationReport, MigrationState, UpgradeState
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView, StageView
from evenflow.views.history import History
from evenflow.views.workers import nodes_with_workers, workers_of

BEGIN = 1_000_000.0
OWNERS = np.array([0, 0, 1, 1], np.uint16)


class Upgraded:
    """A job with a keyed stage of two workers, which replaces them."""

    def __init__(self):
        self.history, self.now = History("clicks", hash_of=lambda key: key), BEGIN

    def tell(self, workers, owners=OWNERS, loads=None, progress=None, **parts):
        """Add a view one second later, in which each worker has reported a window; `loads`: 0.5 by default."""
        self.now += 1
        windows = [self.window(worker, owners, load) for worker, load in zip(workers, loads or [0.5] * len(workers), strict=True)]
        stage = StageView("count", ("count",), tuple(workers), (), False, RoutingTable(owners))
        status = JobStatus("clicks", JobState.RUNNING, None, tuple(workers), 0, self.now - BEGIN, upgrade=progress)
        return self.history.add(JobView(self.now, status, (stage,), tuple(windows), **parts))

    def window(self, worker, owners, useful):
        groups = np.flatnonzero(owners == index_of(worker)).astype(np.int32)
        load = np.full(len(groups), useful / max(len(groups), 1))
        return WorkerWindow(worker, self.now - 1, 1.0, rows_in=10, useful=useful, groups=groups, load=load)

    def columns(self):
        return [second["stages"]["count"] for second in self.history.whole()["seconds"]]


@pytest.fixture
def job():
    return Upgraded()


def test_each_second_has_the_version_of_the_code_of_each_owner(job):
    job.tell(["count-0", "count-1"])
    job.tell(["count-0", "count-1", "count-2v2"], np.array([0, 2, 1, 1], np.uint16))
    job.tell(["count-0v2", "count-1", "count-2v2"], np.array([0, 2, 2, 1], np.uint16))
    job.tell(["count-0v2", "count-1v2"])
    job.tell(["count-0v2", "count-1v2"])
    assert [column.get("codes") for column in job.columns()[1:]] == [None, [1, 1, 2], [2, 1, 2], [2, 2]]


def test_a_second_without_a_view_has_the_code_of_the_second_before(job):
    job.tell(["count-0", "count-1"])
    job.now += 1
    job.tell(["count-0v2", "count-1v2"])
    job.tell(["count-0v2", "count-1v2"])
    assert {second["t"] - BEGIN: second["stages"]["count"].get("codes") for second in job.history.whole()["seconds"]} == {
        0: None, 2: None, 3: [2, 2],
    }  # fmt: skip


def test_two_workers_with_one_index_share_its_band_of_the_heat_map(job):
    job.tell(["count-0", "count-1"])
    job.now -= 1  # the new worker takes its place within the second
    job.tell(["count-0v2", "count-1"])
    job.tell(["count-0v2", "count-1"])
    shared = job.columns()[0]
    assert set(shared["workers"]) == {"count-0", "count-0v2", "count-1"}
    assert shared["bands"] == [2, 2]


def test_a_worker_and_the_one_that_takes_its_place_count_as_one_for_the_imbalance(job):
    for workers, loads in ((["count-0", "count-1"], (0.9, 0.5)), (["count-0v2", "count-1"], (0.1, 0.5))):
        job.tell(workers, loads=loads)
    stage = job.history._stages["count"]
    assert stage.imbalance(BEGIN, BEGIN + 2) == pytest.approx(1.0)


def test_replaced_workers_are_in_no_table_and_the_others_in_the_order_of_their_indexes(job):
    workers = [f"count-{index}" for index in range(11)]
    job.tell(workers)
    after = ["count-0v2", *workers[1:10], "count-10v2"]
    nodes = (ClusterNode("a", 4.0, 4.0, 12), ClusterNode("b", 4.0, 4.0))
    places = {worker: WorkerPlace(f"clicks/{worker}", "a") for worker in (*workers, "count-10v2", "count-0v2")}
    message = job.tell(after, cluster=ClusterView(nodes, places))
    assert [worker for worker, *_ in message["loads"]["count"]["workers"]] == after
    assert [figures.worker for figures in job.history.snapshots.figures()] == after
    assert [worker["name"] for worker in workers_of(job.history.snapshots, "count")["workers"]] == after
    assert [node["workers"] for node in nodes_with_workers(job.history.view)] == [after, []]


def test_the_upgrade_under_way_is_described_with_its_progress_and_both_versions(job):
    message = job.tell(["count-0"], progress=WATCHED, upgrades=(rolled_back(number=7), upgrade_report(compared=upgrade_report().compared)))
    running, over = message["upgrades"]
    assert {name: running[name] for name in ("number", "version", "operators", "state", "over", "details", "problem")} == {
        "number": 0, "version": 2, "operators": ["price", "total"], "state": "watching the new code", "over": False,
        "details": "35 s of 120 s", "problem": None,
    }  # fmt: skip
    assert running["watched"] == pytest.approx(35.2 / 120)
    assert running["compared"] == [{
        "operator": "price",
        "old": {"rows": 9_500, "errors": 0, "selectivity": 0.1, "microseconds": 10.0, "bytes": 2_000},
        "new": {"rows": 500, "errors": 3, "selectivity": 0.2, "microseconds": 20.0, "bytes": 64},
    }]  # fmt: skip
    assert (over["number"], over["state"], over["problem"], over["watched"], over["seconds"]) == (7, "rolled back", PROBLEM, None, 40.0)


def test_an_upgrade_that_is_taken_back_is_described_with_the_reason(job):
    back = replace(WATCHED, state=UpgradeState.RETURNING, watched=None, steps_left=2, problem=PROBLEM)
    (running,) = job.tell(["count-0"], progress=back, upgrades=(upgrade_report(),))["upgrades"]
    assert (running["state"], running["problem"], running["watched"]) == ("taking the new code back", PROBLEM, None)
    assert running["details"] == f"2 steps left; {PROBLEM}"


def test_without_an_upgrade_there_is_nothing_to_describe(job):
    assert job.tell(["count-0"])["upgrades"] == []


def decisions(job):
    return {entry["id"]: entry for entry in job.history.whole()["decisions"]}


def test_an_upgrade_is_a_decision_from_its_begin_to_its_end(job):
    begin = job.now
    job.tell(["count-0"], upgrades=(upgrade_report(began_at=begin),))
    (entry,) = decisions(job).values()
    assert (entry["who"], entry["answer"], entry["begin"], entry["end"]) == ("person", "yes", begin, None)
    assert (entry["what"], entry["expected"]) == ("upgrades price, total to version 2", "5% of the load first")
    done = upgrade_report(began_at=begin, state=UpgradeState.DONE, seconds=1.5)
    job.tell(["count-0"], upgrades=(done,))
    (entry,) = decisions(job).values()
    assert (entry["answer"], entry["end"]) == ("yes", begin + 1.5)
    assert entry["what"] == "upgrades price, total to version 2: done (12 keys, 340 bytes moved)"


def test_an_upgrade_that_was_rolled_back_is_a_failed_decision_with_its_reason(job):
    job.tell(["count-0"], upgrades=(rolled_back(began_at=job.now, seconds=0.5),))
    (entry,) = decisions(job).values()
    assert (entry["answer"], entry["reason"]) == ("failed", f"by hand; {PROBLEM}")
    assert "rolled back" in entry["what"]


def test_an_upgrade_that_was_completed_after_a_failure_is_no_failed_decision(job):
    job.tell(["count-0"], upgrades=(rolled_back(began_at=job.now, state=UpgradeState.DONE),))
    assert [entry["answer"] for entry in decisions(job).values()] == ["yes"]


def test_moves_of_an_upgrade_are_its_own_and_not_the_balancers(job):
    move = MigrationReport(
        number=0, state=MigrationState.DONE, reason="upgrade 0: move the canary's keys", began_at=job.now, seconds=0.1, operator="count",
        strategy="batched", plan=None, groups=3, routed_keys=0, steps=1, steps_done=1, keys_moved=3, state_bytes=30,
    )  # fmt: skip
    job.tell(["count-0"], migrations=(move,))
    assert [entry["who"] for entry in decisions(job).values()] == ["upgrade"]


def test_policies_plan_with_nothing_that_was_measured_before_the_end_of_an_upgrade(job):
    job.tell(["count-0"], upgrades=(upgrade_report(began_at=job.now),))
    assert job.history.snapshots.quiet_since == job.now
    ended = job.now
    for _ in range(3):
        job.tell(["count-0"], upgrades=(rolled_back(began_at=ended - 0.5, seconds=0.5),))
    assert job.history.snapshots.quiet_since == ended
