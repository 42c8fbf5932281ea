"""The flows of the sizing benchmark give rows, and the two ways of writing each give equally many."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.bench.harness.sinks import DiscardSink
from evenflow.bench.sizing.flows import FLOWS, STATES, flow_of, state_flow
from evenflow.bench.sizing.run import bytes_a_row

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ROWS = 4_000


def counted(name):
    rows = []
    flow_of(name, ROWS, ef.to_list(rows)).run(runtime="local", config=ef.JobConfig(parallelism=1)).wait("60s")
    return len(rows)


@pytest.mark.parametrize("what", sorted({name.partition("/")[0] for name in FLOWS if "/" in name}))
def test_python_and_columns_give_the_same_rows(what):
    found = {way: counted(f"{what}/{way}") for way in ("python", "columns")}
    assert found["python"] == found["columns"] > 0


@pytest.mark.parametrize("name", STATES)
def test_every_kind_of_state_has_a_flow_that_can_be_planned(name):
    assert "state" in state_flow(name, 10, DiscardSink()).explain()


def test_a_row_takes_its_columns_and_its_event_time_on_the_wire():
    assert 40 <= bytes_a_row(strings=False) < 42
    assert bytes_a_row(strings=True) > bytes_a_row(strings=False)
