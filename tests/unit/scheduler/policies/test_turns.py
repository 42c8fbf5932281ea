"""A change back takes more than noise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.policies.turns import Noise, Turn, after_change, steady
from evenflow.testing.load_model.closed_loop import ClusterModel, Controller, ModelOperator, closed_loop

NOISE = Noise(change=0.1, target_ratio=0.95)


def snapshot(workers, read=300.0):
    source = OperatorFigures("source", 1, source_rate=300.0, observed_output_rate=read)
    count = OperatorFigures("count", workers, true_processing_rate=100.0 * workers, observed_processing_rate=read)
    return DataflowSnapshot((source, count), (Edge("source", "count"),))


@pytest.mark.parametrize(
    ("grew", "now", "workers", "need", "read", "stays"),
    [
        pytest.param(True, 3, 2, 1.96, 300, True, id="a little less than before"),
        pytest.param(True, 3, 2, 1.8, 300, False, id="much less"),
        pytest.param(False, 2, 3, 2.1, 300, True, id="a little more than before"),
        pytest.param(False, 2, 3, 2.1, 270, False, id="a little more, and too little gets through"),
        pytest.param(False, 2, 3, 2.4, 300, False, id="much more"),
        pytest.param(True, 3, 4, 3.01, 300, False, id="on in the same direction"),
        pytest.param(False, 3, 2, 1.99, 300, False, id="down in the same direction"),
    ],
)
def test_operator_stays_as_it_is_for_as_little_as_noise_may_be(grew, now, workers, need, read, stays):
    last = (Turn("count", grew, 2.0),)
    kept, notes = steady(last, {"count": workers}, {"count": need}, snapshot(now, read), NOISE)
    assert (kept == {}) is stays
    assert len(notes) == stays


def test_last_change_of_each_operator_is_remembered():
    first = after_change((), {"count": 3}, {"count": 2.5}, snapshot(2))
    assert first == (Turn("count", True, 2.5),)
    assert after_change(first, {"count": 2}, {"count": 1.5}, snapshot(3)) == (Turn("count", False, 1.5),)
    assert after_change(first, {"other": 2}, {}, snapshot(3)) == first


@given(st.integers(1, 9), st.integers(1, 9), st.floats(0.1, 9))
def test_first_change_is_never_held_back(now, workers, need):
    assert steady((), {"count": workers}, {"count": need}, snapshot(now), NOISE) == ({"count": workers}, ())


def trembling(time):
    """Return a demand of about the capacity of two workers, give or take 2 %."""
    return 200.0 + (4.0 if int(time / 10) % 2 else -4.0)


def test_ds2_does_not_swing_where_the_demand_trembles_about_a_whole_number_of_workers():
    operators = [ModelOperator("source", 5000.0, demand=trembling), ModelOperator("count", 100.0)]
    course = closed_loop(ClusterModel(operators, [("source", "count")]), Controller(Ds2()), 600.0)
    assert course.sizes("count") in ([1, 2, 3], [1, 3])
