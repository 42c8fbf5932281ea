from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

from evenflow.bench.harness.trace import TRACE, TraceSink, between, curve, firsts, percentile_of
from evenflow.engine.batch import Batch


def trace_of(*records):
    return np.array([(int(created * 1e9), latency, key) for created, latency, key in records], TRACE)


def test_the_records_of_all_checkpoints_are_ordered_by_due_time():
    sink, now = TraceSink(), time.time_ns()
    writer = sink.writer(0, 1)
    for checkpoint, ages in enumerate(([1], [3, 2]), start=1):
        writer.write(Batch(pa.record_batch({"key": ages, "created": [now - age * 10**9 for age in ages]})))
        for payload in sink.commit(checkpoint, writer.prepare(checkpoint)):
            sink.deliver(payload)
    assert sink.trace()["key"].tolist() == [3, 2, 1]
    assert (sink.trace()["latency"] >= [3000, 2000, 1000]).all()
    assert writer.prepare(3) == []


def test_rows_without_a_due_time_are_not_measured():
    sink = TraceSink()
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"key": [1, 2], "created": [0, time.time_ns()]})))
    sink.deliver(writer.prepare(1)[0])
    assert sink.trace()["key"].tolist() == [2]


def test_an_empty_trace_has_no_latency_and_no_curve():
    trace = TraceSink().trace()
    assert percentile_of(trace, 0.99) == 0.0
    assert curve(trace, 0.0, 0.1) == []


def test_records_are_chosen_by_when_they_were_due():
    trace = trace_of((1, 1, 1), (2, 1, 2), (3, 1, 3))
    assert between(trace, 1.5, 3.0)["key"].tolist() == [2]


def test_the_first_record_of_a_key_is_the_one_that_was_due_first():
    assert sorted(firsts(trace_of((1, 7, 1), (2, 5, 2), (3, 9, 1)))["latency"].tolist()) == [5, 7]


def test_a_curve_has_a_point_per_piece_with_records():
    trace = trace_of((9.95, 1, 1), (10.01, 2, 1), (10.02, 4, 1), (10.35, 8, 1))
    points = curve(trace, 10.0, 0.1)
    assert [(start, largest) for start, _, largest in points] == [(-0.1, 1.0), (0.0, 4.0), (0.3, 8.0)]
    assert points[1][1] == pytest.approx(3.98)
