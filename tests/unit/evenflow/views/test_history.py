"""The history of a followed job, second by second: moves, late windows, discarded seconds, outcomes of decisions."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest

from evenflow.balancer.plan import BalanceMove, BalancePlan
from evenflow.balancer.verdict import Verdict
from evenflow.engine.protocol.routing import RoutingTable, even_table
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import MigrationReport, MigrationState
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import BalanceObservation, JobView, StageView
from evenflow.views.history import History
from evenflow.views.stage_history import KEPT

BEGIN = 1_000_000
GROUPS = 8


class Followed:
    """A job of a source and a keyed stage with two workers, whose coordinator gets a request once a second."""

    def __init__(self, history=None):
        self.history = history or History("clicks", hash_of=lambda key: key)
        self.now, self.table = float(BEGIN), even_table(GROUPS, 2)
        self.parts = {}

    def window(self, worker, start=None, length=1.0, rows=100, useful=0.5, hot=(), latencies=(1.0, 2.0)):
        start = self.now - 1 if start is None else start
        groups = np.flatnonzero(self.table.groups == int(worker.rpartition("-")[2])) if worker.startswith("count") else np.zeros(0, int)
        load = np.full(len(groups), useful / max(len(groups), 1))
        return WorkerWindow(
            worker, start, length, rows_in=rows, useful=useful, groups=groups.astype(np.int32), load=load, keyed_records=rows, hot_keys=hot,
            latencies=latencies,
        )  # fmt: skip

    def view(self, *windows, look=None, attempt=0, seconds=None, **parts):
        stages = (
            StageView("read", ("read",), ("read-0",), ("count",), is_source=True),
            StageView("count", ("count",), ("count-0", "count-1"), (), False, self.table, balancer="hotspot", observation=look),
        )
        running = self.now - BEGIN if seconds is None else seconds
        status = JobStatus("clicks", JobState.RUNNING, None, ("read-0", "count-0", "count-1"), 0, running, attempt=attempt)
        return JobView(self.now, status, stages, windows, **parts)

    def tell(self, *windows, **parts):
        message = self.history.add(self.view(*windows, **parts))
        self.now += 1
        return message

    def tick(self, load=(0.5, 0.5), **parts):
        """Add a second in which every worker has reported its window."""
        windows = [self.window("read-0"), *(self.window(f"count-{worker}", useful=useful) for worker, useful in enumerate(load))]
        return self.tell(*windows, **parts)

    def columns(self):
        return {second["t"]: second["stages"]["count"] for second in self.history.whole()["seconds"] if "count" in second["stages"]}


@pytest.fixture
def job():
    return Followed()


def test_a_move_shows_in_the_second_in_which_the_owner_changed(job):
    job.tick()
    job.tick()
    job.table = RoutingTable(np.array([1, 0, 0, 0, 1, 1, 1, 1], np.uint16))
    job.tick()
    job.tick()
    found = {at: column["moves"] for at, column in job.columns().items() if column["moves"]}
    assert list(found) == [BEGIN + 2]
    assert [(move["from"], move["to"], move["count"]) for move in found[BEGIN + 2]] == [(0, 1, 1)]
    assert job.columns()[BEGIN + 1]["bands"] == [4, 4]
    assert job.columns()[BEGIN + 2]["bands"] == [3, 5]


def test_a_key_that_moves_alone_takes_the_row_of_its_group_along(job):
    job.tick()
    job.tick()
    job.table = RoutingTable(job.table.groups, {2 + GROUPS: 1})
    job.tick()
    job.tick()
    found = {at: column["moves"] for at, column in job.columns().items() if column["moves"]}
    assert found == {BEGIN + 2: [{"from": 0, "to": 1, "count": 1, "groups": [[2, 2, 3]]}]}
    assert [job.columns()[BEGIN + second]["bands"] for second in (1, 2)] == [[4, 4], [3, 5]]


def test_the_first_message_has_the_whole_past_of_a_job(job):
    windows = [job.window(worker, start=BEGIN - second) for second in range(1, 100) for worker in ("read-0", "count-0", "count-1")]
    job.tell(*windows)
    assert len([column for column in job.columns().values() if "load" in column]) == 99


def test_a_late_window_is_added_to_its_second(job):
    job.tell(job.window("read-0"), job.window("count-0"))
    job.tick()
    message = job.tell(job.window("count-1", start=BEGIN - 1, useful=0.25))
    (second,) = (second for second in message["seconds"] if second["t"] == BEGIN - 1)
    assert second["stages"]["count"]["workers"] == {"count-0": 0.5, "count-1": 0.25}


def test_a_window_that_is_reported_twice_counts_once(job):
    window = job.window("read-0", rows=100)
    job.tell(window)
    assert job.tell(window)["seconds"] == []
    assert [second["rate"] for second in job.history.whole()["seconds"]] == [100]


@pytest.mark.slow
def test_ten_minutes_are_kept(job):
    for _ in range(KEPT + 50):
        job.tick()
    seconds = [second["t"] for second in job.history.whole()["seconds"]]
    assert len(seconds) == KEPT - 1
    assert min(seconds) > job.now - KEPT - 2


def test_a_message_does_not_grow_with_the_key_groups(job):
    import json

    job.table = even_table(32_768, 2)
    for _ in range(3):
        message = job.tick()
    assert len(json.dumps(message)) < 30_000
    assert len(base64.b64decode(message["seconds"][0]["stages"]["count"]["load"])) == 4 * 256


@pytest.mark.parametrize(
    ("load", "hot", "kind"),
    [
        pytest.param((0.5, 0.5), (), "even", id="even"),
        pytest.param((0.9, 0.3), (), "better", id="uneven and can be better"),
        pytest.param((0.9, 0.3), ((7, 150),), "stuck", id="uneven for one key"),
        pytest.param((0.02, 0.01), (), "idle", id="idle"),
    ],
)
def test_an_imbalance_that_moves_can_lower_is_distinguished_from_one_that_they_can_not(job, load, hot, kind):
    for _ in range(10):
        windows = [job.window(f"count-{worker}", useful=useful, hot=hot if worker == 0 else ()) for worker, useful in enumerate(load)]
        message = job.tell(*windows)
    found = message["loads"]["count"]
    assert found["kind"] == kind
    assert [useful for _, useful, _ in found["workers"]] == list(load)
    assert found["mean"] == pytest.approx(sum(load) / 2)
    assert found["floor"] == pytest.approx(max(1.0, 2 * (150 / 200 if hot else 0)) * sum(load) / 2, rel=1e-3)


def look(verdict, imbalance=1.1):
    return BalanceObservation(imbalance, 1.0, verdict)


def decisions(job):
    return sorted(job.history.whole()["decisions"], key=lambda entry: entry["begin"])


def test_looks_that_change_nothing_are_one_entry_with_their_reasons_counted(job):
    for at in range(5):
        job.tick(look=look(Verdict.EVEN, 1 + at / 100))
    for at in range(2):
        job.tick(look=look(Verdict.BRIEF, 1.3 + at / 100))
    (entry,) = decisions(job)
    assert (entry["who"], entry["answer"], entry["stage"]) == ("balancer", "no", "count")
    assert entry["reason"] == f"{Verdict.EVEN.value} (5 looks); {Verdict.BRIEF.value} (2 looks)"
    assert entry["end"] - entry["begin"] == 6


def test_the_same_look_is_counted_once(job):
    for _ in range(3):
        job.tick(look=look(Verdict.EVEN))
    assert "(1 look)" in decisions(job)[0]["reason"]


PLAN = BalancePlan((BalanceMove(0, 1, group=3), BalanceMove(0, 1, key="JFK")), 1.5, 1.02, 1.0, 900, "worker 0 is hot")


def migration(number, begin, seconds, **more):
    state = MigrationState.RUNNING if seconds is None else MigrationState.DONE
    report = MigrationReport(
        number=number, state=state, reason="hotspot, automatic: worker 0 is hot", began_at=begin, seconds=seconds, operator="count",
        strategy="batched", plan=PLAN, groups=3, routed_keys=0, steps=1, steps_done=1, keys_moved=30, state_bytes=900,
    )  # fmt: skip
    return replace(report, **more)


def test_a_move_is_shown_with_its_result(job):
    for _ in range(12):
        job.tick((0.9, 0.3), look=look(Verdict.COOLING, 1.5))
    begin = job.now
    job.tick((0.9, 0.3), migrations=(migration(0, begin, None),))
    assert decisions(job)[-1]["end"] is None
    job.tick((0.6, 0.6), migrations=(migration(0, begin, 0.5),))
    for _ in range(16):
        job.tick((0.6, 0.6), look=look(Verdict.EVEN, 1.0))
    entry = next(entry for entry in decisions(job) if entry["answer"] == "yes")
    assert (entry["who"], entry["end"]) == ("balancer", begin + 0.5)
    assert entry["expected"] == "max / mean 1.50 → 1.02, floor 1.00"
    assert entry["keys"] == (("JFK", 0, 1),)
    assert entry["effect"] == "max / mean 1.50 → 1.00; p99 2 ms before, 2 meanwhile, 2 after"
    assert [entry["answer"] for entry in decisions(job)] == ["no", "yes", "no"]


def test_moves_that_a_person_requested_are_distinguished_from_those_of_the_balancer(job):
    job.tick(migrations=(migration(0, job.now, 0.1, reason="by hand", plan=None), migration(1, job.now, 0.1, problem="the job went back")))
    assert [(entry["who"], entry["answer"]) for entry in decisions(job)] == [("person", "yes"), ("balancer", "failed")]


def test_moves_for_a_policy_that_scales_are_its_own(job):
    job.tick(migrations=(migration(0, job.now, 0.1, reason="ds2, automatic: 3 to 2 workers", plan=None),))
    assert [entry["who"] for entry in decisions(job)] == ["autoscaler"]


def test_a_recovery_is_an_entry_of_the_history(job):
    job.tick()
    job.tick(attempt=1)
    (entry,) = decisions(job)
    assert (entry["who"], entry["what"]) == ("job", "restored its last checkpoint")


def test_a_job_that_runs_again_is_not_taken_for_the_one_before(job):
    job.tick(attempt=3)
    job.tick(migrations=(migration(0, job.now, 0.1),), attempt=3)
    job.tick(migrations=(migration(0, job.now, 0.1),), attempt=0, seconds=0.0)
    assert [entry["who"] for entry in decisions(job)] == ["balancer", "balancer"]


def test_a_stage_may_get_more_workers(job):
    job.tick()
    job.table = even_table(GROUPS, 3)
    stages = list(job.view().stages)
    stages[1] = replace(stages[1], workers=("count-0", "count-1", "count-2"))
    windows = [job.window(f"count-{worker}") for worker in range(3)]
    job.history.add(replace(job.view(*windows), stages=tuple(stages)))
    assert [worker for worker, *_ in job.history.whole()["loads"]["count"]["workers"]] == ["count-0", "count-1", "count-2"]
