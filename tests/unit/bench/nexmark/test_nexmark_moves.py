"""Latencies of NexMark's results around a change."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.bench.harness.plots import save_plot
from evenflow.bench.harness.record import Run
from evenflow.bench.harness.trace import TRACE
from evenflow.bench.migration.run import RESTART
from evenflow.bench.nexmark.live import live
from evenflow.bench.nexmark.moves import OPERATORS, SCALE, Change, ResultTrace, await_full, cases_of, change_of, draw, verdicts
from evenflow.bench.nexmark.queries import QUERIES
from evenflow.engine.batch import Batch


def trace(latency):
    """Return a result every 10 ms for 60 s, with `latency(seconds)` each, in any order."""
    found = np.zeros(6000, TRACE)
    found["created"] = np.arange(6000) * 10_000_000
    found["latency"] = [latency(n / 100) for n in range(6000)]
    return found[np.random.default_rng(0).permutation(6000)]


def test_a_change_has_the_results_due_meanwhile_and_those_of_ten_seconds_before():
    found = change_of(trace(lambda second: 500.0 if second < 29 else 3.0 if second < 40 else 70.0 if second < 42 else 9.0), 39.9, 2.0, 0.1)
    assert (found.steady, found.largest, found.p99, found.seconds) == (3.0, 70.0, 70.0, 2.0)
    assert found.results == pytest.approx(305, abs=2)
    assert {round(piece[0], 2) for piece in found.curve} >= {-10.0, 0.0, 11.95}


def test_the_time_of_a_result_is_when_it_was_due(monkeypatch):
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000_000)
    sink = ResultTrace()
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"any": ["a", "b"]}), np.array([4_990_000, 4_000_000])))
    sink.deliver(writer.prepare(1)[0])
    assert sink.trace()["latency"].tolist() == [1000.0, 10.0]


@pytest.mark.parametrize(("now", "earliest", "at"), [(100.0, 101.0, 109.9), (100.0, 110.0, 109.9), (112.0, 110.0, 109.9)])
def test_changes_begin_shortly_before_full_ten_seconds(now, earliest, at, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "time", lambda: now)
    monkeypatch.setattr(time, "sleep", slept.append)
    assert await_full(earliest) == pytest.approx(at)
    assert slept == [pytest.approx(max(0.0, at - now))]


@pytest.mark.parametrize("query", OPERATORS)
def test_the_operator_of_each_query_has_keyed_state_and_can_be_scaled(query):
    flow = ef.Dataflow(query)
    QUERIES[query](live(flow, begun=0.0, rate=100.0, readers=2)).write(ResultTrace())
    stage = flow.plan(2).stage_of(OPERATORS[query])
    assert stage.is_keyed
    assert stage.can_be_scaled
    assert stage.name == OPERATORS[query]


def change(p99, largest):
    return Change(10.0, p99, largest, 50, 1.0, [(0.0, p99, largest), (0.05, p99, largest)], 0.0)


def test_targets_are_twice_the_steady_p99_and_a_tenth_of_a_restart():
    changes = {"q5": {"batched": change(19.0, 99.0), "lazy": change(21.0, 101.0), RESTART: change(900.0, 1000.0)}}
    assert [verdict.met for verdict in verdicts(changes)] == [True, True, False, False]


def test_every_change_is_reported_and_drawn(tmp_path):
    cases = cases_of(f"q5, {SCALE}", change(19.0, 99.0))
    expected = {"steady p99": 10.0, "p99 meanwhile": 19.0, "largest": 99.0, "duration": 1.0}
    assert {case.name: case.median for case in cases} == {f"q5, {SCALE}/{name}": value for name, value in expected.items()}
    series = {query: {"batched": change(19.0, 99.0).curve, RESTART: change(900.0, 1000.0).curve} for query in ("q4", "q5", "q8")}
    drawn = Run("nexmark-moves", "now", {}, {}, "", {}, tuple(cases), (), (), (), series, 0.0)
    assert save_plot(drawn, tmp_path / "moves.png", draw)
    assert (tmp_path / "moves.png").stat().st_size > 10_000
