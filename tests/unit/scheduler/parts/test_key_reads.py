"""Reads of keys: the workers that are asked, in which order, and what becomes of lost questions."""

from __future__ import annotations

import pytest
from acting_job import ActingJob

import evenflow as ef
from evenflow.engine.errors import JobBusyError, JobNotRunningError, RequestError
from evenflow.engine.protocol.effects import StateRead
from evenflow.engine.protocol.read_value import ReadValue
from evenflow.scheduler.parts.key_reads import FORGOTTEN_AFTER, MOST
from evenflow.scheduler.protocol.messages import ReadState
from evenflow.scheduler.protocol.requests import Cancel, KeyAnswer, MoveKeys, ReadKey

VALUE = ReadValue.of_object(7)
GROUPS = tuple(range(16))


@pytest.fixture
def job():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
    config = ef.JobConfig(parallelism=3, key_groups=16)
    job = ActingJob(flow.plan(config=config), config)
    job.ask(MoveKeys("count", GROUPS, (), 0, "sudden"))
    job.settle()
    return job


def read(token="a"):
    return ReadKey("count", 5, token)


def asked(job):
    """Take the questions that were sent, as worker and command."""
    questions = [(tell.worker, tell.command) for tell in job.commands if isinstance(tell.command, ReadState)]
    job.commands = [tell for tell in job.commands if not isinstance(tell.command, ReadState)]
    return questions


def test_owner_is_asked_once_and_its_answer_is_given_once(job):
    assert job.ask(read()) is None
    assert job.ask(read()) is None
    ((worker, question),) = asked(job)
    assert (worker, question.wanted.key) == ("count-0", 5)
    job.report(worker, StateRead(question.number, VALUE, typed=True))
    assert job.ask(read()) == KeyAnswer(VALUE)
    assert job.ask(read()) is None, "that is another read"


def test_old_and_new_owner_are_asked_in_turn_while_a_step_moves_the_key(job):
    job.ask(MoveKeys("count", GROUPS, (), 2, "sudden"))
    while not job.core.migrations.in_step:
        tell = job.commands.pop(0)
        job.answer(tell.worker, tell.command)
    workers = []
    for _ in range(4):
        assert job.ask(read()) is None
        ((worker, question),) = asked(job)
        assert question.wanted.newest == job.core.migrations.newest_step > 0
        job.report(worker, StateRead(question.number, here=False))
        workers.append(worker)
    assert workers == ["count-0", "count-2", "count-0", "count-2"]
    job.settle()
    job.ask(read())
    assert [worker for worker, _ in asked(job)] == ["count-2"]


def test_key_without_state_is_compared_with_the_keys_of_other_workers(job):
    job.ask(read())
    ((worker, question),) = asked(job)
    job.report(worker, StateRead(question.number))
    assert job.ask(read()) is None
    ((worker, question),) = asked(job)
    assert (worker, question.wanted.only_type) == ("count-1", True)
    job.report(worker, StateRead(question.number))
    job.ask(read())
    ((worker, question),) = asked(job)
    job.report(worker, StateRead(question.number, problem="its key column `item` is string"))
    with pytest.raises(RequestError, match="its key column `item` is string"):
        job.ask(read())


def test_key_is_absent_once_no_worker_has_keys_to_compare_it_with(job):
    for _ in range(3):
        assert job.ask(read()) is None
        ((worker, question),) = asked(job)
        job.report(worker, StateRead(question.number))
    assert job.ask(read()) == KeyAnswer(None)


def test_answers_to_earlier_questions_and_of_other_workers_are_ignored(job):
    job.ask(read())
    ((worker, question),) = asked(job)
    job.report("count-1", StateRead(question.number, VALUE, typed=True))
    job.report(worker, StateRead(question.number + 1, VALUE, typed=True))
    assert job.ask(read()) is None


def test_worker_is_asked_again_once_the_job_has_gone_back(job):
    job.ask(read())
    asked(job)
    job.core.record.attempt += 1
    job.ask(read())
    assert len(asked(job)) == 1


def test_reads_that_no_caller_asks_for_any_more_make_room_for_others(job):
    for number in range(MOST):
        job.ask(read(f"read {number}"))
    with pytest.raises(JobBusyError, match="1000 keys are being read"):
        job.ask(read("another"))
    job.tick(FORGOTTEN_AFTER)
    assert job.ask(read("another")) is None


def test_no_key_is_read_after_the_end(job):
    job.ask(Cancel())
    with pytest.raises(JobNotRunningError, match="job `f` is cancelled: keys can only be read while it runs"):
        job.ask(read())
