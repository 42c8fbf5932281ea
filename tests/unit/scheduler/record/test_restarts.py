"""The delays after which a failed job restarts."""

from __future__ import annotations

import pytest

from evenflow.engine.errors import FlowError, JobError, RecordError
from evenflow.scheduler.configs.restart import RestartConfig
from evenflow.scheduler.record.restarts import LONGEST, Restarts
from evenflow.state.errors import StateFolderError

LOST = JobError("worker count-0 is gone")


def delays(settings, times, *, progress=True):
    restarts = Restarts(settings)
    return [restarts.delay(LOST, now, progress=progress) for now in times]


def test_exponential_delay_doubles_up_to_a_limit():
    assert delays(RestartConfig("exponential", 1.0, 4), [0, 0, 0, 0, 0]) == [1.0, 2.0, 4.0, 8.0, None]
    assert max(delays(RestartConfig("exponential", 1.0, 20), [0] * 20)) == LONGEST


def test_a_delay_that_is_longer_than_the_limit_from_the_first_stays():
    assert delays(RestartConfig("exponential", 3600.0, 3), [0, 0]) == delays(RestartConfig("fixed", 3600.0, 3), [0, 0]) == [3600.0] * 2


def test_fixed_delay_stays():
    assert delays(RestartConfig("fixed", 0.5, 3), [0, 0, 0, 0]) == [0.5, 0.5, 0.5, None]


def test_quiet_time_makes_the_next_one_the_first_again():
    settings = RestartConfig("exponential", 1.0, 2, quiet=60.0)
    assert delays(settings, [0, 50, 100, 161]) == [1.0, 2.0, None, 1.0]


def test_none_never_starts_again():
    restarts = Restarts(RestartConfig("none"))
    assert restarts.delay(LOST, 0.0, progress=False) is None
    assert (restarts.first_cause, restarts.in_row) == (LOST, 0)
    assert restarts.ends(LOST) == 'RestartConfig("none") says so'


def test_refused_record_would_be_refused_again():
    assert Restarts(RestartConfig()).delay(RecordError("map", "ValueError: no"), 0.0, progress=True) is None


def test_quiet_time_without_progress_begins_no_new_row():
    settings = RestartConfig("exponential", 1.0, 2, quiet=60.0)
    assert delays(settings, [0, 100, 200], progress=False) == [1.0, 2.0, None]


def test_an_error_that_another_attempt_would_meet_again_ends_the_job_at_once():
    restarts = Restarts(RestartConfig("fixed", 0.5, 3))
    lost = StateFolderError("count", "/srv/state", "[Errno 2] No such file or directory", 2)
    assert restarts.delay(lost, 0.0, progress=True) is None
    assert restarts.ends(lost) == (
        "another attempt would meet the same error: create /srv/state on every node, writable for the user that runs Ray, "
        "or set another folder by StateConfig(dir=...)"
    )


def test_the_reason_for_no_further_restart_names_the_setting():
    restarts = Restarts(RestartConfig("fixed", 0.5, 1))
    assert [restarts.delay(LOST, now, progress=False) for now in (0.0, 1.0)] == [0.5, None]
    assert restarts.ends(LOST) == "RestartConfig(most=1) allows for no more restarts in a row"


def test_first_cause_of_a_row_is_kept_and_forgotten_with_it():
    restarts, later = Restarts(RestartConfig("fixed", 0.0, 5, quiet=10.0)), JobError("another")
    for now in (0.0, 1.0):
        restarts.delay(LOST if now == 0.0 else later, now, progress=False)
    assert (restarts.first_cause, restarts.in_row) == (LOST, 2)
    restarts.delay(later, 100.0, progress=True)
    assert restarts.first_cause is later


def test_unknown_strategy_is_refused():
    with pytest.raises(FlowError, match="RestartConfig: strategy is 'again'; expected one of exponential, fixed, none"):
        RestartConfig("again")
