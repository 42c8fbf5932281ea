"""NexMark's queries whose main operator waits for each record."""

from __future__ import annotations

import time

import pytest
from guard import SLEEP

import evenflow as ef
from evenflow.bench.nexmark import ds2
from evenflow.bench.nexmark.check import compare, connect
from evenflow.bench.nexmark.ds2 import NEEDED, READERS, STARTS, WAITED, add_waits, verdicts
from evenflow.bench.nexmark.live import LiveEvents, live
from evenflow.bench.nexmark.queries import QUERIES
from evenflow.bench.nexmark.waits import Waiting
from evenflow.bench.scaling.course import Course, Phase

EVENTS = 60_000


@pytest.fixture
def slept(monkeypatch):
    """Note the sleeps of operators. Only a job's handle really sleeps, between its polls, 20 times a second."""
    times = []

    def sleep(seconds):
        if seconds == 0.05:
            SLEEP(seconds)
        else:
            times.append(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    return times


def flow_of(query, **arguments):
    flow = ef.Dataflow(query)
    stream = QUERIES[query](live(flow, begun=0.0, rate=WAITED[query].rate, readers=READERS, **arguments))
    return flow, stream


@pytest.mark.parametrize("query", WAITED)
def test_all_rows_are_those_of_duckdb_and_every_record_is_waited_for(query, slept, tmp_path):
    flow, stream = flow_of(query, events=EVENTS)
    stream.write(ef.write_parquet(tmp_path / "out"))
    add_waits(flow.graph, WAITED[query])
    config = ef.JobConfig(combine=False, checkpoint=ef.CheckpointConfig(interval=None))
    flow.run(runtime="local", config=config).wait("60s")
    for name in ("person", "auction", "bid"):
        LiveEvents(name, begun=0.0, rate=WAITED[query].rate, events=EVENTS).write(tmp_path / "events" / name)
    with connect(tmp_path / "events") as database:
        rows, missing, wrong = compare(database, query, tmp_path / "out")
    assert (missing, wrong) == (0, 0)
    assert rows > 0
    demanded = sum(slept) / (EVENTS / WAITED[query].rate)
    assert demanded == pytest.approx(NEEDED, rel=0.05), "worker-seconds in a second, as the query's share says"


@pytest.mark.parametrize("workers", STARTS.values())
@pytest.mark.parametrize("query", WAITED)
def test_the_operator_alone_can_be_scaled(query, workers):
    flow, stream = flow_of(query)
    stream.write(ef.to_list([]))
    add_waits(flow.graph, WAITED[query])
    stages = {stage.name: stage for stage in flow.plan(workers).stages}
    operator = WAITED[query].operator
    assert isinstance(stages[operator].chain[0].operator, Waiting)
    assert stages[operator].parallelism == workers
    assert stages[operator].can_be_scaled
    others = [stage for name, stage in stages.items() if name != operator]
    assert all(not stage.can_be_scaled or stage.bounds.fixed for stage in others), "the policy can change this operator only"


def course(workers, decisions, lost=0):
    phase = Phase(0.0, 30.0, 100.0, {"counts": 4})
    return Course((phase,), ((1.0, {"counts": 1}), (29.0, {"counts": workers})), decisions, lost=lost)


@pytest.mark.parametrize(
    ("found", "met"),
    [
        (course(4, (2.0, 4.0, 6.0)), [True, True, True]),
        (course(4, (2.0, 4.0, 6.0, 8.0)), [False, True, True]),
        (course(5, (2.0,)), [True, False, True]),
        (course(4, (2.0,), lost=1), [True, True, False]),
    ],
)
def test_three_steps_and_enough_workers_and_no_wrong_row(found, met):
    assert [verdict.met for verdict in verdicts({"good": course(4, (2.0,)), "q5": found})] == met


def test_the_optimum_has_room_for_the_engine():
    assert ds2.NEEDED < 4 < ds2.MOST_WORKERS
