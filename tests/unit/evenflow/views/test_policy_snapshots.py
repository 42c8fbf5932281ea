"""Policies see in a recording what the coordinator's own snapshots had, at any time and over the whole time."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from recorded_jobs import BEGIN, GROUPS, finished_job, recorded, view_at

from evenflow.balancer.policies import named
from evenflow.engine.errors import FlowError, RequestError, SnapshotError
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.recording.file import Recording
from evenflow.recording.moment import recording_of, seconds_of, snapshots_at
from evenflow.recording.whatif import moments, would_move, would_scale
from evenflow.scheduler.policies.dhalion import Dhalion
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.policies.threshold import ThresholdPolicy
from evenflow.scheduler.protocol.reports import MigrationReport, MigrationState
from evenflow.views.policy_snapshots import SPARE, PolicySnapshots


@pytest.fixture(scope="module")
def finished():
    """Made before tests may no longer sleep, as its handle does."""
    return finished_job()


def snapshots_of(*views):
    snapshots = PolicySnapshots()
    for view in views:
        snapshots.add(view)
    return snapshots


def migration(began, seconds):
    return MigrationReport(
        number=0, state=MigrationState.DONE, reason="by hand", began_at=began, seconds=seconds, operator="count", strategy="fluid",
        plan=None, groups=1, routed_keys=0, steps=1, steps_done=1, keys_moved=0, state_bytes=0,
    )  # fmt: skip


def test_an_operators_load_is_that_of_the_jobs_own_snapshot(tmp_path, finished):
    job, view = finished
    own = job.snapshot("count")
    path = recorded(tmp_path / "job.rec", [view])
    found = snapshots_at(Recording(path), "0").load("count")
    assert [key[:2] for key in found.hot_keys] == [key[:2] for key in own.hot_keys]
    assert found.group_workers.tolist() == own.group_workers.tolist()
    assert found.group_loads == pytest.approx(own.group_loads, rel=1e-6)
    assert found.group_bytes.tolist() == own.group_bytes.tolist()
    for policy in ("hotspot", "lpt"):
        assert named(policy).plan(found).moves == named(policy).plan(own).moves


def test_windows_that_are_reported_again_count_once():
    views = [view_at(second) for second in range(3)]
    assert snapshots_of(*views, *views).load("count") == snapshots_of(*views).load("count")


def test_the_dataflow_has_the_newest_interval():
    snapshots = snapshots_of(*(view_at(second) for second in range(6)))
    read, count = snapshots.dataflow().operators
    assert (read.source_rate, read.observed_processing_rate) == (1000.0, 1000.0)
    assert (count.parallelism, count.observed_processing_rate) == (2, 1000.0)
    assert count.true_processing_rate == pytest.approx(500 / 0.9 + 500 / 0.1)
    assert (read.min_parallelism, read.max_parallelism) == (1, 1)


def test_windows_from_before_a_change_do_not_count():
    snapshots = snapshots_of(*(view_at(second) for second in range(6)), view_at(6, migrations=(migration(BEGIN + 5, 0.5),)))
    with pytest.raises(SnapshotError, match="has reported nothing since the last change"):
        snapshots.dataflow()
    snapshots.add(view_at(7))
    assert snapshots.dataflow().operator("count").parallelism == 2


def test_an_operator_is_named_where_there_are_several_or_another():
    snapshots = snapshots_of(view_at(0))
    assert snapshots.keyed_stage(None).name == "count"
    with pytest.raises(RequestError, match="no operator `read` with keyed state: operators with keyed state are count"):
        snapshots.keyed_stage("read")


def test_a_time_is_seconds_or_a_clock_time():
    began = datetime(2026, 1, 31, 23, 59).timestamp()
    ended = began + 120
    assert seconds_of("30", began, ended) == began + 30
    assert seconds_of("23:59:30", began, ended) == began + 30
    assert seconds_of("00:00", began, ended) == began + 60
    assert seconds_of("2026-02-01T00:00:30", began, ended) == began + 90
    for text, message in (
        ("121.5", "no second 121.5"),
        ("-2", "no second -2"),
        ("23:57", "there is no 23:57 in it"),
        ("soon", "is no time"),
    ):
        with pytest.raises(RequestError, match=message):
            seconds_of(text, began, ended)


def test_a_recording_is_distinguished_from_other_files(tmp_path):
    path, other = recorded(tmp_path / "job.rec", [view_at(0)]), tmp_path / "a@b.json"
    other.write_text("{}")
    assert recording_of(f"{path}@12.5") == (path, "12.5")
    assert recording_of(str(other)) is None
    assert recording_of("-") is None
    with pytest.raises(RequestError, match="name a moment of it"):
        recording_of(str(path))


def test_a_moment_knows_what_was_then_and_nothing_later(tmp_path):
    other = RoutingTable(np.array([0, 1, 1, 1, 1, 1, 1, 1], np.uint16))
    views = [view_at(second, table=None if second < 5 else other) for second in range(10)]
    recording = Recording(recorded(tmp_path / "job.rec", views))
    for at, groups in (("4.9", GROUPS // 2), ("5", 1)):
        load = snapshots_at(recording, at).load(None)
        assert sum(group.worker == 0 for group in load.key_groups) == groups


def test_a_scaling_policy_is_asked_as_often_as_an_autoscaler_would():
    views = [view_at(second, loads=(0.9, 0.9) if second < 20 else (0.05, 0.05)) for second in range(40)]
    rows = list(would_scale(views, "ds2"))
    assert rows[0].begin == BEGIN + 4  # after the warm-up and an interval
    assert [row.last.changes for row in rows] == ["", "count 2 -> 1"]
    assert sum(row.looks for row in rows) == 18
    assert all(row.last.decided.reason for row in rows[1:])


def test_policy_of_a_recording_has_the_jobs_own_settings(tmp_path):
    own = {"ds2": {"min_change": 2}, "dhalion": {"blacklist": "5m"}}
    views = [view_at(second, loads=(0.05, 0.05), own_settings=own) for second in range(20)]
    recording = Recording(recorded(tmp_path / "job.rec", views))
    snapshots = snapshots_at(recording, "12")
    assert (snapshots.policy("ds2"), snapshots.policy("dhalion")) == (Ds2(min_change=2), Dhalion(blacklist="5m"))
    assert snapshots.policy("threshold") == ThresholdPolicy()
    assert snapshots.policy("ds2", {"min_change": 3, "rollback_looks": 1}) == Ds2(min_change=3, rollback_looks=1)
    with pytest.raises(RequestError, match="ds2 has no setting 'slots'"):
        snapshots.policy("ds2", {"slots": 1})
    assert {row.last.changes for row in would_scale(recording.views(), "ds2")} == {""}
    assert [row.last.changes for row in would_scale(recording.views(), "ds2", {"min_change": 1})] == ["count 2 -> 1"]


def test_policy_begins_again_when_the_job_gave_it_other_settings():
    def own(second):
        return {"ds2": {"min_change": 2}} if second < 20 else {}

    views = [view_at(second, loads=(0.05, 0.05), own_settings=own(second)) for second in range(40)]
    rows = list(would_scale(views, "ds2"))
    assert [row.last.changes for row in rows] == ["", "count 2 -> 1"]
    assert rows[1].begin == BEGIN + 20


def test_policies_are_not_asked_while_keys_move():
    views = [view_at(second, migrations=(migration(BEGIN, None),)) for second in range(30)]
    assert list(would_scale(views, "ds2")) == []


def test_a_policy_without_its_goal_says_what_is_missing():
    with pytest.raises(FlowError, match="latency_target"):
        list(would_scale([view_at(second) for second in range(10)], "queueing"))


def test_a_balancer_is_asked_at_each_moment():
    rows = list(would_move([view_at(second) for second in range(11)], moments(BEGIN, BEGIN + 10, 3), "hotspot", None))
    assert [row.time for row in rows] == [BEGIN, BEGIN + 5, BEGIN + 10]
    assert all(row.plan.imbalance_before == pytest.approx(1.8) and row.plan.imbalance_after < 1.2 for row in rows)


def test_no_more_windows_are_kept_than_policies_look_at():
    snapshots = snapshots_of(*(view_at(second) for second in range(100)))
    kept = snapshots._metrics.history("count-0")
    assert len(kept) == snapshots.view.plan_windows + SPARE
    assert kept[-1].start == BEGIN + 98
