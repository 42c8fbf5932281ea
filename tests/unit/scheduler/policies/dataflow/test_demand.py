"""The demand from outside, carried through the dataflow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.policies.dataflow.demand import arrivals, backlog_over, selectivity, whole_workers
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge


def test_selectivity_is_by_true_rates_else_by_observed_ones():
    assert selectivity(OperatorFigures("o", 1, true_processing_rate=10, true_output_rate=5, observed_processing_rate=1)) == 0.5
    assert selectivity(OperatorFigures("o", 1, observed_processing_rate=4, observed_output_rate=1)) == 0.25
    assert selectivity(OperatorFigures("o", 1, true_processing_rate=10)) is None


def test_an_edge_takes_its_share():
    operators = (OperatorFigures("source", 1, source_rate=100), OperatorFigures("a", 1), OperatorFigures("b", 1))
    snapshot = DataflowSnapshot(operators, (Edge("source", "a", 0.25), Edge("source", "b", 0.75)))
    assert arrivals(snapshot) == {"source": 100, "a": 25, "b": 75}


def test_behind_an_operator_of_unknown_selectivity_nothing_is_known():
    operators = (OperatorFigures("source", 1, source_rate=100), OperatorFigures("a", 1), OperatorFigures("b", 1))
    assert arrivals(DataflowSnapshot(operators, (Edge("source", "a"), Edge("a", "b"))))["b"] is None


def test_an_arrival_rate_that_was_measured_counts():
    operators = (OperatorFigures("source", 1, source_rate=100), OperatorFigures("a", 1, arrival_rate=40))
    assert arrivals(DataflowSnapshot(operators, (Edge("source", "a"),)))["a"] == 40


def test_a_backlog_is_carried_through_as_well():
    operators = (
        OperatorFigures("source", 1, source_rate=100, queue_records=500),
        OperatorFigures("a", 1, true_processing_rate=10, true_output_rate=20, arrival_rate=40),
        OperatorFigures("b", 1),
    )
    snapshot = DataflowSnapshot(operators, (Edge("source", "a"), Edge("a", "b")))
    assert arrivals(snapshot, backlog_over(10)) == {"source": 50, "a": 50, "b": 100}


@given(st.integers(1, 10_000), st.floats(0, 1e-10))
def test_rounding_errors_add_no_worker(workers, noise):
    assert whole_workers(workers * (1 + noise)) == workers


@pytest.mark.parametrize(("needed", "workers"), [(0.0, 1), (0.3, 1), (7.78, 8), (4.0, 4), (4.001, 5), (float("inf"), 65_535)])
def test_workers_are_whole_and_at_least_one(needed, workers):
    assert whole_workers(needed) == workers
