"""The promises of the load figures."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.keys.load import EXACT, EXACT_KEYS, HOT_KEYS, KeyLoad

heavy = st.tuples(st.integers(0, 200), st.integers(1, 100))
sides = st.sampled_from((None, "left", "right"))


@given(batches=st.lists(st.tuples(sides, st.lists(heavy, max_size=120)), max_size=8))
def test_count_of_a_hot_key_is_never_too_high_and_too_low_by_at_most_a_small_share(batches):
    load, true, true_left = KeyLoad(4), Counter(), Counter()
    for side, batch in batches:
        counts = Counter()
        for key, count in batch:
            counts[key] += count
        true.update(counts)
        true_left.update(counts if side == "left" else ())
        load.add_keys(list(counts), list(counts.values()), side)
        assert max(len(load.hot), len(load.hot_left)) <= HOT_KEYS
    found = load.take_hot()
    for key, count in true.items():
        records, left = found.get(key, (0, 0))
        assert count - true.total() / HOT_KEYS <= records <= count
        assert true_left[key] - true_left.total() / HOT_KEYS <= left <= true_left[key]


@given(groups=st.lists(st.integers(0, 7)), weights=st.lists(st.integers(1, 9), min_size=8, max_size=8))
def test_records_are_counted_by_group(groups, weights):
    load = KeyLoad(8)
    load.add(np.array(groups, np.int64))
    load.add(np.arange(8), np.array(weights))
    assert load.take().tolist() == [groups.count(group) + weights[group] for group in range(8)]


def test_taking_the_load_resets_the_counts():
    load = KeyLoad(2)
    load.add(np.array([0, 1]))
    load.add_keys(["a"], [2])
    load.add_keys(["a"], [3], "left")
    assert load.touched
    load.take()
    assert load.take_hot() == {"a": (5, 3)}
    assert not load.touched
    assert load.take().tolist() == [0, 0]
    assert load.take_hot() == {}


def test_every_batch_is_counted_at_first_and_one_in_four_later():
    load = KeyLoad(8)
    due = [load.due() for _ in range(EXACT + 40)]
    assert all(due[:EXACT])
    assert sum(due[EXACT:]) == 10
    load.take_hot()
    assert load.due()


def test_one_batch_in_four_is_counted_after_many_keys():
    load = KeyLoad(8)
    due = []
    for _ in range(24):
        due.append(load.due())
        if due[-1]:
            load.add(np.zeros(EXACT_KEYS // 4, np.int64))
    assert due == [True] * 4 + [number % 4 == 0 for number in range(5, 25)]
    load.take_hot()
    assert load.due()


def test_nothing_is_due_when_load_is_not_tracked():
    load = KeyLoad(8, enabled=False)
    assert not any(load.due() for _ in range(100))
