"""The size of a pane stays proportional to its number of keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import evenflow as ef
from evenflow.engine.aggregates.partial_aggregates import PartialAggregator
from evenflow.engine.batch import Batch
from evenflow.engine.keyed_state.memory.pane import Pane


def partial_of(aggregator, keys):
    rows = Batch(pa.record_batch({"k": keys}))
    return aggregator.aggregate(rows, np.arange(len(keys)), [rows.rows.column("k")], len(keys))


def test_log_of_repeated_keys_is_combined_before_it_grows_large():
    aggregator, pane = PartialAggregator("step", ("k",), {"n": ef.count()}), Pane()
    for _ in range(200):
        pane.append(partial_of(aggregator, list(range(1_000))), aggregator)
        assert sum(map(len, pane.log)) <= 2 * 32_768
    combined = pane.combined(aggregator)
    assert len(combined) == 1_000
    assert set(combined.rows.tolist()) == {200}
    assert aggregator.results(combined)[0].to_pylist() == [200] * 1_000


def test_many_keys_are_not_combined_with_every_batch():
    aggregator, pane = PartialAggregator("step", ("k",), {"n": ef.count()}), Pane()
    for first in range(0, 100_000, 10_000):
        pane.append(partial_of(aggregator, list(range(first, first + 10_000))), aggregator)
    assert len(pane.log) > 1
    assert len(pane.combined(aggregator)) == 100_000
