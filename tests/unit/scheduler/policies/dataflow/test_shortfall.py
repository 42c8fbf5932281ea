"""The part of the demand that gets through."""

from __future__ import annotations

import pytest

from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.shortfall import got_through, slowest_through, total_offered, total_read
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge


def dataflow(read: float | None, processed: float | None, **source_) -> DataflowSnapshot:
    source = OperatorFigures("source", 1, source_rate=300, observed_output_rate=read, **source_)
    return DataflowSnapshot((source, OperatorFigures("count", 1, observed_processing_rate=processed)), (Edge("source", "count"),))


def test_a_source_that_works_off_its_backlog_reads_no_more_than_the_demand():
    assert (total_offered(dataflow(450, None)), total_read(dataflow(450, None))) == (300, 300)


def test_without_measurements_all_of_it_gets_through():
    assert got_through(dataflow(None, None)) == 1.0


def test_the_sources_decide_where_no_operator_was_measured():
    assert got_through(dataflow(150, None)) == 0.5


def test_an_operator_that_works_off_its_queue_explains_a_source_that_waits():
    assert got_through(dataflow(150, 330)) == 1.0


def test_a_source_that_reads_all_needs_no_explanation():
    assert got_through(dataflow(300, 150)) == 1.0


@pytest.mark.parametrize(("growth", "part"), [(None, 0.5), (150, 0.5), (30, 0.9), (0, 1.0), (-20, 1.0), (1000, 0.5)])
def test_no_more_is_missing_than_what_a_known_backlog_has_grown_by(growth, part):
    assert got_through(dataflow(150, None, backlog_growth=growth)) == part


def test_a_dataflow_without_demand_lacks_nothing():
    assert got_through(DataflowSnapshot((OperatorFigures("source", 1),))) == 1.0


def test_the_slowest_operator_is_what_gets_through_where_it_was_measured():
    assert [slowest_through(dataflow(None, processed)) for processed in (150, 450, None)] == [0.5, 1.0, None]
