"""A coordinator that takes over from a lost one waits for an unavailable store, reports that, and can be cancelled."""

from __future__ import annotations

import threading

import pytest
from patience import patience

from evenflow.actors.processes.take_over import TakeOver
from evenflow.engine.errors import FlowError, JobBusyError
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import CheckpointReport
from evenflow.scheduler.protocol.requests import Cancel, ShowHistory, ShowStatus
from evenflow.state.errors import StoreRefusedError, StoreUnavailableError

BOUND = patience(30)


class Store:
    """A store that answers once `tries` have failed."""

    def __init__(self, tries, error=None):
        self.tries, self.calls, self.begun, self.refused = tries, threading.Semaphore(0), threading.Event(), []
        self.error = error if error is not None else StoreUnavailableError("s3://bucket/f: terms/1: no answer")

    def begin(self):
        self.tries -= 1
        self.calls.release()
        if self.tries >= 0:
            raise self.error
        self.begun.set()

    def refuse(self, error):
        self.refused.append(error)
        self.begun.set()


def test_it_tries_until_the_store_answers():
    store = Store(5)
    TakeOver("f", store.begin, store.refuse, delay=0.001).start()
    assert store.begun.wait(BOUND)
    assert (store.tries, store.refused) == (-1, [])


def test_status_and_progress_say_what_it_waits_for_and_it_can_be_cancelled():
    store = Store(10**9)
    waiting = TakeOver("f", store.begin, store.refuse, delay=0.001)
    waiting.start()
    for _ in range(2):
        assert store.calls.acquire(timeout=BOUND)
    status = waiting.ask(ShowStatus())
    assert (status.state, status.problems) == (JobState.RESTARTING, ("waits for its store: s3://bucket/f: terms/1: no answer",))
    assert waiting.state is JobState.RESTARTING
    with pytest.raises(JobBusyError, match="job `f` restarts, and waits for its store: s3://bucket/f"):
        waiting.ask(ShowHistory(CheckpointReport))
    waiting.wait(0.001)
    waiting.ask(Cancel())
    waiting.wait(BOUND)
    assert (waiting.state, waiting.given_up) == (JobState.CANCELLED, True)


@pytest.mark.parametrize("error", [FlowError("doesn't fit"), ZeroDivisionError("a defect"), PermissionError(13, "denied", "/srv")])
def test_an_error_that_another_try_would_meet_again_ends_it(error):
    store = Store(1, error)
    TakeOver("f", store.begin, store.refuse, delay=0.001).start()
    assert store.begun.wait(BOUND)
    assert store.refused == [error]


def test_store_that_refuses_is_given_up_after_a_while():
    store = Store(10**9, StoreRefusedError("s3://bucket/f: PermissionError"))
    TakeOver("f", store.begin, store.refuse, delay=0.001, patience=0.01).start()
    assert store.begun.wait(BOUND)
    assert store.refused == [store.error]
