"""The lag of sources in seconds: what was the end of the input when says how long the next record has waited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.source import SplitFigures
from evenflow.scheduler.load.source_lag import MOST_POINTS, Lag, SourceLags
from evenflow.scheduler.load.window import WorkerWindow


def seen(*observed, worker="read-0", split="0"):
    """Return lags after windows that end at these times, with these positions and lags: (at, position, lag)."""
    lags = SourceLags()
    for at, position, lag in observed:
        lags.add(WorkerWindow(worker, at - 1.0, 1.0, splits=(SplitFigures(split, lag=lag, position=position),)))
    return lags


def test_source_that_has_read_everything_has_no_lag():
    assert seen((1.0, 10, 0), (2.0, 20, 0)).by_operator(9.0) == {"read": Lag(0, 0.0)}


def test_lag_is_the_time_since_the_input_was_where_the_reader_is():
    lags = seen((1.0, 0, 0), (2.0, 0, 100), (3.0, 50, 150))
    assert lags.by_operator(3.0) == {"read": Lag(150, 1.5)}
    assert lags.by_operator(5.0) == {"read": Lag(150, 3.5)}, "it grows while the reader stands still"


def test_quiet_time_between_two_records_does_not_count_as_waiting():
    lags = seen((1.0, 10, 0), (2.0, 10, 0), (50.0, 10, 0), (51.0, 10, 5))
    assert lags.by_operator(51.0)["read"].seconds == 1.0


def test_records_that_were_there_before_wait_at_least_since_the_first_look():
    assert seen((5.0, 0, 1_000), (6.0, 100, 900)).by_operator(8.0) == {"read": Lag(900, 3.0)}


def test_operator_has_all_records_and_the_seconds_of_its_slowest_split():
    lags = SourceLags()
    for at in (1.0, 2.0, 3.0):
        splits = (SplitFigures("0", lag=0, position=0), SplitFigures("1", lag=int(at), position=0), SplitFigures("2", newest=7))
        lags.add(WorkerWindow("read-0", at - 1.0, 1.0, splits=splits))
    assert lags.by_operator(4.0) == {"read": Lag(3, 3.0)}


def test_worker_without_splits_counts_by_its_backlog_and_begins_again_after_a_restart():
    lags = SourceLags()
    for at, rows, backlog in ((1.0, 10, 0), (2.0, 10, 20), (3.0, 10, 40)):
        lags.add(WorkerWindow("read-0", at - 1.0, 1.0, rows_in=rows, backlog=backlog))
    assert lags.by_operator(3.0) == {"read": Lag(40, pytest.approx(4 / 3))}
    lags.restart()
    assert lags.by_operator(3.0) == {}


def test_splits_know_their_input_after_a_restart_that_reads_again():
    lags = seen((1.0, 0, 0), (2.0, 100, 0), (3.0, 200, 0))
    lags.restart()
    lags.add(WorkerWindow("read-0", 3.0, 1.0, splits=(SplitFigures("0", lag=200, position=100),)))
    assert lags.by_operator(4.0) == {"read": Lag(200, 2.0)}


def test_split_that_another_worker_has_taken_counts_once():
    lags = seen((1.0, 0, 5))
    lags.add(WorkerWindow("read-1", 1.0, 1.0, splits=(SplitFigures("0", lag=7, position=0),)))
    lags.add(WorkerWindow("read-0", 1.0, 1.0))
    assert lags.by_operator(2.0)["read"].records == 7
    lags.follow({"read-0"})
    assert lags.by_operator(2.0) == {}


def test_topic_that_was_recreated_begins_again():
    assert seen((1.0, 500, 0), (2.0, 0, 3), (3.0, 0, 3)).by_operator(4.0) == {"read": Lag(3, 2.0)}


def test_unknown_lag_or_position_is_no_lag():
    lags = SourceLags()
    lags.add(WorkerWindow("read-0", 0.0, 1.0, splits=(SplitFigures("0", lag=3), SplitFigures("1", position=3))))
    assert lags.by_operator(1.0) == {}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 60)), min_size=1, max_size=3 * MOST_POINTS))
def test_seconds_are_within_a_window_of_the_truth_or_a_lower_bound(steps):
    """Records arrive at the moments of the steps, and a reader takes them in order."""
    arrived, read, end, lags = [], 0, 0, SourceLags()
    for second, (new, taken) in enumerate(steps, 1):
        arrived += [float(second)] * new
        end += new
        read = min(end, read + taken)
        lags.add(WorkerWindow("read-0", second - 1.0, 1.0, splits=(SplitFigures("0", lag=end - read, position=read),)))
    now = float(len(steps))
    found = lags.by_operator(now)["read"]
    assert found.records == end - read
    truth = now - arrived[read] if read < end else 0.0
    sparser = 1 + len(steps) // MOST_POINTS
    assert truth <= found.seconds <= truth + 2.0 * sparser or (not steps[0][1] and found.seconds <= truth + 2.0 * sparser)
