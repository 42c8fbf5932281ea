"""Spreading over joining workers takes a group of the worker with the most at a time, also for thousands of groups."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.balancer.evacuation import spread
from evenflow.engine.protocol.routing import RoutingTable


@given(st.lists(st.integers(0, 5), min_size=8, max_size=40), st.integers(6, 9))
def test_each_group_comes_from_the_worker_with_the_most(groups, workers):
    expected = np.array(groups, np.uint16)
    counts, least = np.bincount(expected, minlength=workers), len(groups) // workers
    for worker in np.flatnonzero(counts < least).tolist():
        while counts[worker] < least:
            richest = int(np.argmax(counts))
            expected[np.flatnonzero(expected == richest)[0]] = worker
            counts[richest] -= 1
            counts[worker] += 1
    assert spread(RoutingTable(np.array(groups, np.uint16)), workers).groups.tolist() == expected.tolist()
