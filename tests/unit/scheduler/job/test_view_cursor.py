"""A cursor reports each window once, and the end of each operation once, however views overlap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.scheduler.job.view_cursor import OVERLAP, ViewCursor
from evenflow.scheduler.load.metrics import HISTORY
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.controller import UNDER_WAY, DecisionRecord
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot
from evenflow.scheduler.policies.decision import ScalingDecision
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import CheckpointReport, CheckpointState, ScalingReport, ScalingState
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView, StageView

STATUS = JobStatus("shop", JobState.RUNNING, None, (), 0, 0.0)
CHECKPOINT = CheckpointReport(number=1, state=CheckpointState.PENDING, reason="interval", began_at=5.0)
SCALING = ScalingReport(
    number=1, state=ScalingState.DONE, reason="by hand", began_at=5.0, seconds=1.0, operator="count", before=1, after=2, keys_moved=0,
    state_bytes=0,
)  # fmt: skip


def view(now, *windows, workers=("count-0", "count-1"), **parts):
    return JobView(now, STATUS, (StageView("count", ("count",), workers, (), False),), windows, **parts)


def window(worker, start):
    return WorkerWindow(worker, start, 1.0)


@pytest.fixture
def cursor():
    return ViewCursor()


def starts(news):
    return [(found.worker, found.start) for found in news.windows]


def test_a_window_that_views_repeat_is_new_once(cursor):
    assert starts(cursor.advance(view(3.0, window("count-0", 1.0), window("count-1", 1.0)))) == [("count-0", 1.0), ("count-1", 1.0)]
    assert starts(cursor.advance(view(4.0, window("count-0", 1.0), window("count-0", 2.0)))) == [("count-0", 2.0)]


def test_a_window_that_arrives_after_a_later_one_is_new(cursor):
    cursor.advance(view(3.0, window("count-0", 2.0)))
    assert starts(cursor.advance(view(4.0, window("count-0", 1.0), window("count-0", 2.0)))) == [("count-0", 1.0)]


def test_all_that_a_job_remembers_may_be_repeated(cursor):
    windows = [window("count-0", float(start)) for start in range(HISTORY)]
    cursor.advance(view(200.0, *windows))
    assert starts(cursor.advance(view(201.0, *windows[1:], window("count-0", float(HISTORY))))) == [("count-0", float(HISTORY))]


def test_windows_of_workers_that_have_left_are_dropped_and_forgotten(cursor):
    cursor.advance(view(3.0, window("count-1", 1.0)))
    assert starts(cursor.advance(view(4.0, window("count-1", 2.0), workers=("count-0",)))) == []
    assert starts(cursor.advance(view(5.0, window("count-1", 1.0)))) == [("count-1", 1.0)]


def test_an_operation_is_new_when_it_has_ended(cursor):
    ended = replace(CHECKPOINT, state=CheckpointState.COMPLETE, seconds=0.5)
    assert cursor.advance(view(6.0, checkpoints=(CHECKPOINT,))).checkpoints == ()
    assert cursor.advance(view(7.0, checkpoints=(ended,))).checkpoints == (ended,)
    assert cursor.advance(view(8.0, checkpoints=(ended,))).checkpoints == ()


def test_operations_of_several_kinds_may_have_the_same_number(cursor):
    ended = replace(CHECKPOINT, state=CheckpointState.FAILED, seconds=0.5)
    news = cursor.advance(view(7.0, checkpoints=(ended,), scalings=(SCALING,)))
    assert (news.checkpoints, news.scalings) == ((ended,), (SCALING,))


def test_a_decision_is_new_when_its_outcome_is_known(cursor):
    snapshot = DataflowSnapshot((OperatorFigures("count", 2),))
    known = [DecisionRecord(1.0, "ds2", snapshot, ScalingDecision({"count": 3}), done) for done in (UNDER_WAY, "carried out")]
    assert [len(cursor.advance(view(2.0, decisions=(record,))).decisions) for record in (*known, known[1])] == [0, 1, 0]


def test_the_next_view_overlaps_this_one(cursor):
    assert cursor.since == 0.0
    cursor.advance(view(50.0))
    assert cursor.since == 50.0 - OVERLAP
