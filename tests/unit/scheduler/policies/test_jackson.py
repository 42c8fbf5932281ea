"""A dataflow as a network of queues."""

from __future__ import annotations

from math import factorial, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.policies.jackson import Station, erlang_c, sojourn, time_under_way

DRS = (Station("A", 10, 4), Station("B", 25, 12), Station("C", 5, 1))


@pytest.mark.parametrize(("workers", "time"), [((3, 3, 6), 1.71327), ((4, 4, 8), 1.06072)])
def test_time_under_way_is_as_published(workers, time):
    assert time_under_way(DRS, workers, 10) == pytest.approx(time, abs=5e-6)


@given(st.integers(1, 20), st.floats(0.01, 0.99))
def test_erlang_c_is_the_textbook_formula(workers, busy):
    load = workers * busy
    waiting = load**workers / factorial(workers) / (1 - busy)
    assert erlang_c(workers, load) == pytest.approx(waiting / (sum(load**k / factorial(k) for k in range(workers)) + waiting))


@given(st.integers(1, 50), st.floats(0.1, 40))
def test_each_worker_helps_less_than_the_one_before(workers, load):
    station = Station("o", load, 1.0)
    one, two, three = (sojourn(station, workers + more) for more in range(3))
    assert one >= two >= three
    if one < inf:
        assert one - two >= two - three - 1e-9


def test_a_queue_that_grows_without_end_is_never_over():
    assert sojourn(Station("o", 10, 5), 2) == inf
    assert Station("o", 10, 5).fewest == 3


def test_a_large_operator_does_not_overflow():
    assert 0 < erlang_c(5000, 4990) < 1
