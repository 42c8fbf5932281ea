"""Decides which tests `make test` runs, and which are left to `make check` or `make nightly`: by the markers `slow`, `nightly`, `first`
and `few`.

>>> sorted(sample(10, 3))
[0, 4, 8]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SLOW_FOLDERS = ("cluster", "spark", "unit/bench")
"""Folders whose tests belong to `make check` unless they are marked `first`."""


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Mark all tests that belong to `make check` or `make nightly` as `slow`."""
    sampled = defaultdict(list)
    for item in items:
        if item.get_closest_marker("nightly") or (in_slow_folder(item.path) and not item.get_closest_marker("first")):
            item.add_marker(pytest.mark.slow)
        elif few := item.get_closest_marker("few"):
            sampled[item.nodeid.partition("[")[0], few.args[0]].append(item)
    for (_, number), cases in sampled.items():
        chosen = sample(len(cases), number)
        for position, item in enumerate(cases):
            if position not in chosen:
                item.add_marker(pytest.mark.slow)


def in_slow_folder(path: Path) -> bool:
    return any(path.is_relative_to(TESTS / folder) for folder in SLOW_FOLDERS)


def sample(size: int, number: int) -> set[int]:
    """Return positions in a list of `size` cases, one from each of `number` sections.

    Each section's is one further from its beginning than the one before: cases often are a product, and so each factor varies.
    """
    if number >= size:
        return set(range(size))
    starts = [position * size // number for position in range(number + 1)]
    return {start + index % (end - start) for index, (start, end) in enumerate(pairwise(starts))}
