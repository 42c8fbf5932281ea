"""Useful time is the cost of the records, without the time of other threads on the same CPUs."""

from __future__ import annotations

from itertools import accumulate, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.actors.clocks import JobClock
from evenflow.actors.task.meter import CLOCK, Meter, own_share
from evenflow.actors.task.run_queue import RunQueue, Spent
from evenflow.engine.task.core import TaskCore


class Counted(RunQueue):
    """The times that the system would have counted: `spent` in the window, and `late` in each wait of it."""

    def __init__(self, spent, late=0.0):
        super().__init__()
        self.spent = spent
        self._so_far = accumulate(repeat(late))

    def take(self):
        return self.spent

    def so_far(self):
        return Spent(0.0, next(self._so_far))


def meter(spent, late=0.0, clock=CLOCK):
    flow = ef.Dataflow("f")
    flow.read(ef.generate()).key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
    task = next(task for task in flow.plan().tasks if task.stage == "count")
    core = TaskCore(task)
    core.open()
    return Meter(core, 1.0, Counted(spent, late), clock=clock)


def test_time_without_a_cpu_is_no_useful_time():
    measured = meter(Spent(on_cpu=0.0, waiting=0.0))
    measured.add_useful(1.0)
    whole = measured.take(0, 0, 0)
    assert (whole.useful, whole.starved) == (1.0, 0.0)
    starved = meter(Spent(on_cpu=0.0, waiting=1e9))
    starved.add_useful(1.0)
    assert (starved.take(0, 0, 0).useful, starved.take(0, 0, 0).starved) == (0.0, 1e9)


def test_a_wait_made_longer_by_a_missing_cpu_does_not_lower_useful_time():
    """Ten batches wake a worker 50 ms late each, and its function waits for a service."""
    now = 100.0
    measured = meter(Spent(on_cpu=0.01, waiting=0.5), late=0.05, clock=JobClock(lambda: now, lambda: now))
    for _ in range(10):
        with measured.waiting(for_credit=False):
            now += 0.08
        measured.add_useful(0.02)
        now += 0.02
    window = measured.take(0, 0, 0)
    assert (window.useful, window.wait_input) == (pytest.approx(0.2), pytest.approx(0.3))
    assert (window.starved, window.length) == (0.5, pytest.approx(1.0))


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_wall_clock_that_is_set_ends_no_window_early_or_late(step):
    wall, passed = 1_000_000.25, 500.0
    measured, found = meter(Spent(0.0, 0.0), clock=JobClock(lambda: wall, lambda: passed)), []
    wall += step
    for _ in range(12):
        passed, wall = passed + 0.25, wall + 0.25
        if measured.due():
            window = measured.take(0, 0, 0)
            found.append((window.start, window.length))
    assert found == [(1_000_000.25, 0.75), (1_000_001.0, 1.0), (1_000_002.0, 1.0)]


def test_waiting_records_and_batches_are_reported():
    window = meter(Spent(0.0, 0.0)).take(3, 700, 0)
    assert (window.queued, window.queued_rows) == (3, 700)


def test_waiting_in_a_function_is_useful_time():
    assert own_share(1.0, Spent(on_cpu=0.01, waiting=0.0)) == 1.0


def test_half_of_the_time_in_the_run_queue_leaves_half():
    assert own_share(1.0, Spent(on_cpu=0.5, waiting=0.5)) == 0.5


def test_time_on_a_cpu_is_left_in_any_case():
    assert own_share(0.1, Spent(on_cpu=0.05, waiting=3.0)) == 0.5
    assert own_share(0.0, Spent(on_cpu=0.0, waiting=3.0)) == 1.0


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
def test_a_share_is_between_zero_and_one(busy, on_cpu, waiting):
    assert 0.0 <= own_share(busy, Spent(on_cpu, waiting)) <= 1.0
