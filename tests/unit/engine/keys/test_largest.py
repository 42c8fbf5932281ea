"""The largest of many counts are those of a sorted list."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.engine.keys.load import HISTOGRAM_FROM, largest

MADE = {
    "ones": lambda random, size: np.ones(size, np.int64),
    "up to three": lambda random, size: random.integers(0, 4, size),
    "skewed": lambda random, size: random.zipf(1.3, size).clip(max=1 << 40),
    "all large": lambda random, size: random.integers(255, 1 << 40, size),
    "one large": lambda random, size: np.concatenate([np.zeros(size - 1, np.int64), [256]]),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("size", [1, 15, 16, 17, HISTOGRAM_FROM, HISTOGRAM_FROM + 1, 20_000])
@pytest.mark.parametrize("most", [1, 16])
def test_the_largest_are_those_of_a_sorted_list(made, size, most):
    counts = MADE[made](np.random.default_rng(size), size)
    where = largest(counts, most).tolist()
    assert len(set(where)) == len(where)
    assert sorted(counts[where].tolist()) == sorted(counts.tolist())[-most:]
