"""The failures that a job remembers, for people."""

from __future__ import annotations

import pytest
from acting_job import ActingJob

import evenflow as ef
from evenflow.engine.errors import JobLostError, RecordError
from evenflow.scheduler.protocol.failures import MOST, cause_of, failure_of
from evenflow.scheduler.protocol.requests import Fail, ShowView


class Unshowable:
    def __repr__(self):
        raise RuntimeError("no text")


def test_a_value_that_can_not_be_shown_fails_nothing():
    failure = failure_of(RecordError("parse", "no number", key="JFK", record={"v": Unshowable()}), 1.0)
    assert failure.key == "'JFK'"
    assert "its __repr__ raises RuntimeError" in failure.record


class Refused(RecordError):
    """An error of a user's program."""


def test_causes_are_classes_of_evenflow_so_that_there_are_few():
    errors = [Refused("parse", "no"), JobLostError("gone"), None]
    assert [cause_of(error) for error in errors] == ["RecordError", "JobLostError", "requested"]


def test_long_texts_are_cut():
    failure = failure_of(RecordError("parse", "x" * 10_000, record="y" * 10_000), 1.0)
    assert len(failure.text) < MOST + 10
    assert len(failure.record) < MOST + 100


@pytest.mark.parametrize("error", [JobLostError("a worker is gone"), JobLostError("")])
def test_other_errors_have_their_class_and_text(error):
    failure = failure_of(error, 2.0)
    assert (failure.time, failure.kind, failure.operator) == (2.0, "JobLostError", "")
    assert failure.text.endswith(str(error))


def test_a_view_has_the_error_that_ended_the_job():
    flow = ef.Dataflow("clicks")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    job = ActingJob(flow.plan(), ef.JobConfig())
    assert job.ask(ShowView()).failures == ()
    job.ask(Fail(RecordError("parse", "no number", key="JFK")))
    (failure,) = job.ask(ShowView()).failures
    assert (failure.operator, failure.key, failure.text) == ("parse", "'JFK'", "no number")
