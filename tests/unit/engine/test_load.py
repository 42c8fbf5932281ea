"""What the load figures promise."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.load import HOT_KEYS, KeyLoad

heavy = st.tuples(st.integers(0, 200), st.integers(1, 100))


@given(batches=st.lists(st.lists(heavy, max_size=120), max_size=8))
def test_count_of_a_hot_key_is_never_too_high_and_too_low_by_at_most_a_small_share(batches):
    load, true = KeyLoad(4), Counter()
    for batch in batches:
        counts = Counter()
        for key, count in batch:
            counts[key] += count
        true.update(counts)
        load.add_keys(list(counts), list(counts.values()))
        assert len(load.hot) <= HOT_KEYS
    found = load.take_hot()
    for key, count in true.items():
        assert count - true.total() / HOT_KEYS <= found.get(key, 0) <= count


@given(groups=st.lists(st.integers(0, 7)), weights=st.lists(st.integers(1, 9), min_size=8, max_size=8))
def test_records_are_counted_by_group(groups, weights):
    load = KeyLoad(8)
    load.add(np.array(groups, np.int64))
    load.add(np.arange(8), np.array(weights))
    assert load.take().tolist() == [groups.count(group) + weights[group] for group in range(8)]


def test_taking_starts_anew():
    load = KeyLoad(2)
    load.add(np.array([0, 1]))
    load.add_keys(["a"], [2])
    assert load.touched
    load.take()
    load.take_hot()
    assert not load.touched
    assert load.take().tolist() == [0, 0]
    assert load.take_hot() == {}
