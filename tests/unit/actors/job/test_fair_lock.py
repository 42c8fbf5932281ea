"""A fair lock: threads acquire it in the order of their requests."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import time

import pytest
from patience import patience

from evenflow.actors.job.fair_lock import FairLock


def until(what):
    deadline, nothing = time.monotonic() + patience(60), threading.Event()
    while not what():
        assert time.monotonic() < deadline
        nothing.wait(0.001)


def test_threads_that_take_it_again_and_again_take_turns():
    lock, turns = FairLock(), []

    def take(name):
        for _ in range(20):
            with lock:
                turns.append(name)
                until(lambda: lock._waiting or len(turns) > 38)

    threads = [threading.Thread(target=take, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience(60))
    assert len(turns) == 40
    assert all(one != other for one, other in itertools.pairwise(turns))


def test_it_may_be_taken_again_by_its_owner_while_another_waits():
    lock, order = FairLock(), []

    def other():
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock:
        thread.start()
        until(lambda: lock._waiting)
        with lock, lock:
            order.append("owner")
    thread.join(patience(60))
    assert order == ["owner", "other"]


def test_an_error_releases_the_lock():
    lock = FairLock()
    with contextlib.suppress(ValueError), lock:
        int("no number")
    with lock:
        assert lock._depth == 1


def test_thread_that_is_interrupted_while_it_waits_leaves_the_queue():
    lock, go, over, last = FairLock(), threading.Event(), threading.Event(), []
    signal.siginterrupt(signal.SIGINT, True)  # whatever ran before in this process

    def hold():
        with lock:
            go.wait(patience(10))

    def interrupt():
        until(lambda: lock._waiting)
        while lock._waiting and not over.is_set():  # a signal just before the thread blocks is noticed when the next one wakes it
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            over.wait(0.05)

    holder, interrupter = threading.Thread(target=hold), threading.Thread(target=interrupt)
    holder.start()
    until(lambda: lock._owner == holder.ident)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt), lock:
        last.append("never")
    over.set()
    assert not lock._waiting
    go.set()
    with lock:
        last.append("after it")
    assert last == ["after it"]
    holder.join(patience(60))
    interrupter.join(patience(60))
