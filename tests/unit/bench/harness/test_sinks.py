from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.bench.harness.sinks import EDGES_MS, LatencySink, bin_of, percentile
from evenflow.engine.batch import Batch


@given(st.lists(st.floats(0.02, 90_000.0), min_size=1, max_size=50), st.sampled_from([0.5, 0.99, 1.0]))
def test_percentiles_are_at_most_a_percent_above_the_exact_ones(values, share):
    counts = np.bincount(bin_of(np.array(values)), minlength=len(EDGES_MS))
    exact = float(np.quantile(values, share, method="inverted_cdf"))
    assert exact * 0.999999 <= percentile(counts, share) <= exact * 1.011


def test_rows_of_all_checkpoints_are_counted_once_by_second():
    sink = LatencySink()
    writer = sink.writer(0, 1)
    now = time.time_ns() // 1_000_000_000 * 1_000_000_000
    for checkpoint, ages in enumerate(([0, 1], [1]), start=1):
        writer.write(Batch(pa.record_batch({"created": [now - age * 1_000_000_000 for age in ages]})))
        for payload in sink.commit(checkpoint, writer.prepare(checkpoint)):
            sink.deliver(payload)
    assert {second: int(counts.sum()) for second, counts in sink.counts.items()} == {now // 10**9: 1, now // 10**9 - 1: 2}
    assert writer.prepare(3) == []


@pytest.mark.parametrize(("latency", "place"), [(-1.0, 0), (0.0, 0), (1e9, len(EDGES_MS) - 1)])
def test_latencies_beyond_the_bins_count_in_the_outermost(latency, place):
    assert bin_of(np.array([latency])).tolist() == [place]
