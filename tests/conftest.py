"""What all tests share: hypothesis gives every run the same examples, no verdict depends on how fast the machine is, and each test is part
of `make test`, or of `make check`.

To look for new counterexamples: `pytest --hypothesis-profile=explore tests/unit`.
"""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from patience import patience

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what it puts into the background so, and every process that a test starts would be deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", parent=settings.get_profile("repeatable"), derandomize=False, max_examples=2_000, print_blob=True)
settings.load_profile("repeatable")

TESTS = Path(__file__).parent
SLOW_FOLDERS = ("cluster", "spark", "unit/bench")
"""Tests in these belong to `make check` unless they are marked `first`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as `slow` what `make test` doesn't run, and let the bound of every test grow with the machine's patience."""
    sampled = defaultdict(list)
    for item in items:
        marked = item.get_closest_marker("timeout")
        item.add_marker(pytest.mark.timeout(patience(marked.args[0] if marked else float(config.getini("timeout")))), append=False)
        if in_slow_folder(item) and not item.get_closest_marker("first"):
            item.add_marker(pytest.mark.slow)
        elif few := item.get_closest_marker("few"):
            sampled[item.nodeid.partition("[")[0], few.args[0]].append(item)
    for (_, number), cases in sampled.items():
        chosen = sample(len(cases), number)
        for position, item in enumerate(cases):
            if position not in chosen:
                item.add_marker(pytest.mark.slow)


def in_slow_folder(item: pytest.Item) -> bool:
    return any(item.path.is_relative_to(TESTS / folder) for folder in SLOW_FOLDERS)


def sample(size: int, number: int) -> set[int]:
    """Positions in a list of `size` cases, spread evenly; which one of its stretch is taken goes round, as cases often are a product."""
    if number >= size:
        return set(range(size))
    starts = [position * size // number for position in range(number + 1)]
    return {start + index % (end - start) for index, (start, end) in enumerate(pairwise(starts))}


@pytest.fixture(scope="session", autouse=True)
def bounds_of_a_jobs_calls_grow_too() -> Iterator[None]:
    """`job.wait("60s")`, and the bounds that calls have by themselves: also in programs of the documentation, which run as they stand."""
    import evenflow.job

    seconds = evenflow.job.seconds

    def grown(value: Any, name: str) -> float:
        return patience(seconds(value, name)) if name == "timeout" else seconds(value, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evenflow.job, "seconds", grown)
        yield
