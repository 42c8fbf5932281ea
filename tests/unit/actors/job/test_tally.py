"""Events of a job are counted once, however often views repeat them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shown_upgrades import rolled_back, upgrade_report

from evenflow.actors.job.tally import Tally
from evenflow.scheduler.job.view_cursor import ViewCursor
from evenflow.scheduler.load.source_lag import Lag
from evenflow.scheduler.load.wait import Wait, WaitKind
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.controller import UNDER_WAY, DecisionRecord
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot
from evenflow.scheduler.policies.decision import ScalingDecision
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import CheckpointReport, CheckpointState
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView, StageView

STAGES = (StageView("count", ("count",), ("count-0",), (), False),)
SOURCE = StageView("read", ("read",), ("read-0",), ("count",), True)
SEEN = DataflowSnapshot((OperatorFigures("count", 2),))


class Counted:
    """A tally of views that come one after another."""

    def __init__(self) -> None:
        self.tally, self._cursor = Tally(), ViewCursor()

    def add(self, view: JobView) -> None:
        self.tally.add(view, self._cursor.advance(view))


def view(now: float, *windows: WorkerWindow, status: dict[str, object] | None = None, **parts: object) -> JobView:
    told = JobStatus("shop", JobState.RUNNING, None, ("count-0",), 0, now, **(status or {}))
    return JobView(now, told, STAGES, windows, **parts)


def window(start: float, *latencies: float) -> WorkerWindow:
    return WorkerWindow("count-0", start, 1.0, latencies=latencies)


def checkpoint(number: int, state: CheckpointState, seconds: float | None) -> CheckpointReport:
    return CheckpointReport(number=number, state=state, reason="interval", began_at=float(number), seconds=seconds)


def decision(time: float, done: str) -> DecisionRecord:
    return DecisionRecord(time, "ds2", SEEN, ScalingDecision({"count": 3}), done)


def test_windows_that_views_repeat_count_once():
    counted = Counted()
    tally = counted.tally
    counted.add(view(2.0, window(0.0, 1.0), window(1.0, 2_000.0)))
    counted.add(view(3.0, window(1.0, 2_000.0), window(2.0, 90_000.0)))
    counted = tally.latencies["count"]
    assert dict(counted.buckets())["1.0"] == 1
    assert dict(counted.buckets())["60.0"] == 2
    assert counted.buckets()[-1] == ("+Inf", 3)
    assert counted.sum == pytest.approx(92.001)


def test_a_report_counts_when_it_is_over():
    counted = Counted()
    tally = counted.tally
    counted.add(view(2.0, checkpoints=(checkpoint(1, CheckpointState.COMPLETE, 0.5), checkpoint(2, CheckpointState.PENDING, None))))
    counted.add(view(3.0, checkpoints=(checkpoint(1, CheckpointState.COMPLETE, 0.5), checkpoint(2, CheckpointState.FAILED, 1.5))))
    counted.add(view(4.0, checkpoints=(checkpoint(2, CheckpointState.FAILED, 1.5),)))
    assert tally.ended == {("checkpoint", "", "complete"): 1, ("checkpoint", "", "failed"): 1}
    assert tally.checkpoint_seconds.sum == 2.0


def test_an_upgrade_counts_when_it_is_over_by_its_outcome():
    counted = Counted()
    for now, report in ((101.0, upgrade_report()), (141.0, rolled_back()), (999.0, rolled_back())):
        counted.add(view(now, upgrades=(report,)))
    assert counted.tally.ended == {("upgrade", "", "rolled back"): 1}


def test_a_decision_counts_when_its_outcome_is_known():
    counted = Counted()
    tally = counted.tally
    for done in (UNDER_WAY, "carried out in 0.5 s", "carried out in 0.5 s"):
        counted.add(view(2.0, decisions=(decision(1.0, done),)))
    counted.add(view(9.0, decisions=(decision(1.0, "carried out in 0.5 s"), decision(8.0, "refused: no room"))))
    assert tally.decisions == {("ds2", "carried out"): 1, ("ds2", "refused"): 1}


def test_a_recovery_lasts_until_the_job_runs_and_is_none_if_the_job_ends():
    tally = Tally()
    for now, state in (
        (0, JobState.RUNNING), (1, JobState.RESTARTING), (3, JobState.RUNNING), (4, JobState.RESTARTING), (5, JobState.FAILED),
    ):  # fmt: skip
        tally.note_state(state, float(now))
    assert tally.recovery_seconds.buckets()[-1] == ("+Inf", 1)
    assert tally.recovery_seconds.sum == 2.0


def test_restarts_are_counted_by_cause():
    counted = Counted()
    tally = counted.tally
    for restarts in (0, 3, 41):
        counted.add(view(float(restarts), status={"restart_causes": {"JobLostError": restarts}, "no_progress_seconds": 7.0}))
    assert (tally.restarts, tally.state, tally.no_progress_seconds) == ({"JobLostError": 41}, JobState.RUNNING, 7.0)


def test_each_cause_of_a_standstill_has_the_seconds_of_its_longest_wait():
    counted = Counted()
    waits = tuple(Wait(WaitKind.FUNCTION, "", seconds) for seconds in (7.0, 9.0))
    counted.add(view(1.0, status={"waits_for": waits}))
    assert (counted.tally.waits[WaitKind.FUNCTION], counted.tally.waits[WaitKind.INPUT]) == (9.0, 0.0)
    counted.add(view(2.0))
    assert set(counted.tally.waits.values()) == {0.0}


def test_bytes_of_checkpoints_are_those_of_the_newest_and_those_written_for_all():
    counted = Counted()
    tally = counted.tally
    first = replace(checkpoint(1, CheckpointState.COMPLETE, 0.5), state_bytes=100, saved_bytes=100)
    second = replace(checkpoint(2, CheckpointState.COMPLETE, 0.5), state_bytes=130, saved_bytes=30)
    failed = checkpoint(3, CheckpointState.FAILED, 0.5)
    for now, reports in ((2.0, (first,)), (3.0, (first, second)), (4.0, (second, failed))):
        counted.add(view(now, checkpoints=reports))
    assert (tally.checkpoint_size, tally.checkpoint_saved) == (130, 130)


def test_lag_is_that_of_sources_and_begins_again_with_the_next_attempt():
    counted = Counted()
    tally = counted.tally
    for now, attempt, backlog in ((2.0, 1, 5), (3.0, 1, 8), (4.0, 2, 3)):
        read, count = (WorkerWindow(name, now - 1.0, 1.0, backlog=backlog) for name in ("read-0", "count-0"))
        counted.add(replace(view(now, read, count, status={"attempt": attempt}), stages=(SOURCE, *STAGES)))
        assert tally.source_lags == {"read": Lag(backlog, now - 2.0 if attempt == 1 else 0.0)}


def test_the_age_of_the_newest_checkpoint_counts_from_its_end_or_from_the_first_view():
    counted, ages = Counted(), []
    tally = counted.tally
    failed = checkpoint(25, CheckpointState.FAILED, 1.0)
    for now, reports in ((10.0, ()), (15.0, ()), (22.0, (checkpoint(20, CheckpointState.COMPLETE, 1.0),)), (30.0, (failed,))):
        counted.add(view(now, checkpoints=reports))
        ages.append(tally.checkpoint_age)
    assert ages == [0.0, 5.0, 1.0, 9.0]
