"""The topologies of Stela emit the rows of a loop over their lines, and a row that is wrong or missing is found."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.papers.stela import TOPOLOGIES
from evenflow.bench.papers.stela.check import differences
from evenflow.bench.papers.stela.flow import TopologyFlow
from evenflow.bench.papers.stela.load import Load

LINES = 1_500


pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.fixture(scope="module")
def flows():
    return {}


@pytest.fixture(params=TOPOLOGIES)
def finished(request, flows):
    """Run the topology's flow, once for all tests."""
    if request.param not in flows:
        flow = TopologyFlow.of(request.param, load=Load(pace=0.0), total=LINES)
        flow.flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval=None))).wait()
        flows[request.param] = flow
    return flows[request.param]


def texts_of(flow):
    return {sink: [row["text"] for row in rows] for sink, rows in flow.rows.items()}


def test_every_sink_gets_the_rows_of_the_sequential_computation(finished):
    found = finished.differences()
    assert found.keys() == finished.rows.keys()
    assert all(rows > LINES // 2 and (missing, wrong) == (0, 0) for rows, missing, wrong in found.values())


@pytest.mark.parametrize(
    ("fault", "missing_wrong"),
    [
        pytest.param(lambda texts: texts[1:], (1, 0), id="a row is missing"),
        pytest.param(lambda texts: [*texts, texts[5]], (0, 1), id="a row came twice"),
        pytest.param(lambda texts: [f"{texts[0]}?", *texts[1:]], (1, 1), id="a row is wrong"),
    ],
)
def test_a_fault_at_any_sink_is_found(finished, fault, missing_wrong):
    for sink, texts in texts_of(finished).items():
        faulty = {**texts_of(finished), sink: fault(texts)}
        assert differences(finished.topology, finished.lines, faulty)[sink][1:] == missing_wrong


def test_a_source_that_skips_a_line_is_found(finished):
    with pytest.raises(BenchmarkError, match="skipped or repeated one"):
        differences(finished.topology, [given[:-2] + given[-1:] for given in finished.lines], texts_of(finished))


def test_neighbours_are_not_chained_so_that_each_operator_is_scaled_alone(finished):
    stages = {stage.name: len(stage.chain) for stage in finished.flow.plan(config=ef.JobConfig()).stages}
    sinks = len(finished.rows)
    operators = {"linear": 5, "star": 5, "diamond": 6, "page_load": 7, "processing": 8, "network": 10}[finished.topology]
    assert len(stages) == operators + len(finished.lines)
    assert sinks in (1, 2)
