from __future__ import annotations

import select

import pytest

from evenflow.actors.channels.waker import Waker


@pytest.fixture
def waker():
    waker = Waker()
    yield waker
    waker.close()


def readable(waker):
    return bool(select.select([waker.fileno()], [], [], 0)[0])


def test_it_is_readable_from_a_wake_until_it_is_cleared(waker):
    assert not readable(waker)
    waker.wake()
    assert readable(waker)
    waker.clear()
    assert not readable(waker)


def test_it_can_be_woken_more_often_than_its_pipe_holds(waker):
    for _ in range(100_000):
        waker.wake()
    waker.clear()
    assert not readable(waker)


def test_waking_a_closed_one_does_nothing(waker):
    waker.close()
    waker.wake()
    waker.close()
