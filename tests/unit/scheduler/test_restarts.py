"""When a failed job starts again, and after how long."""

from __future__ import annotations

import pytest

from evenflow.engine.errors import FlowError, JobError, RecordError
from evenflow.scheduler.job.restarts import LONGEST, Restarts, RestartSettings

LOST = JobError("worker count-0 is gone")


def delays(settings, times):
    restarts = Restarts(settings)
    return [restarts.delay(LOST, now) for now in times]


def test_exponential_delay_doubles_up_to_a_limit():
    assert delays(RestartSettings("exponential", 1.0, 4), [0, 0, 0, 0, 0]) == [1.0, 2.0, 4.0, 8.0, None]
    assert max(delays(RestartSettings("exponential", 1.0, 20), [0] * 20)) == LONGEST


def test_fixed_delay_stays():
    assert delays(RestartSettings("fixed", 0.5, 3), [0, 0, 0, 0]) == [0.5, 0.5, 0.5, None]


def test_quiet_time_makes_the_next_one_the_first_again():
    settings = RestartSettings("exponential", 1.0, 2, quiet=60.0)
    assert delays(settings, [0, 50, 100, 161]) == [1.0, 2.0, None, 1.0]


def test_none_never_starts_again():
    restarts = Restarts(RestartSettings("none"))
    assert restarts.delay(LOST, 0.0) is None
    assert (restarts.first_cause, restarts.total) == (LOST, 0)


def test_refused_record_would_be_refused_again():
    assert Restarts(RestartSettings()).delay(RecordError("map", "ValueError: no"), 0.0) is None


def test_first_cause_of_a_row_is_kept_and_forgotten_with_it():
    restarts, later = Restarts(RestartSettings("fixed", 0.0, 5, quiet=10.0)), JobError("another")
    for now in (0.0, 1.0):
        restarts.delay(LOST if now == 0.0 else later, now)
    assert (restarts.first_cause, restarts.total) == (LOST, 2)
    restarts.delay(later, 100.0)
    assert restarts.first_cause is later


def test_unknown_strategy_is_refused():
    with pytest.raises(FlowError, match="'again' is no restart strategy; expected one of exponential, fixed, none"):
        RestartSettings("again")
