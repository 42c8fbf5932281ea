"""The number of jobs that a module of simulations runs: a part of its full number, or about `EVENFLOW_SEEDS`, distributed the
same way.

Seeds come in whole blocks, one block per test: a failure is found and shown early, and tests always count over as many jobs.
Unless `EVENFLOW_SEEDS` is set, some tests run only the first few seeds of a block.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

TOLD = os.environ.get("EVENFLOW_SEEDS")
QUICKLY = 0.06
"""The default share of its full number that a module runs: all tests together take ten minutes at most.

Half of the planted faults (`planted/`) show in the first three runs of their flow, and all in the first hundred.
"""


def proportion(full: int) -> float:
    """Return the factor for all numbers of seeds in a module whose full number of jobs is `full`."""
    return int(TOLD) / full if TOLD else QUICKLY


def blocks(seeds: int, size: int, times: float, quick: int | None = None) -> list[range]:
    """Return about `times * seeds` seeds in blocks of `size`, at least one; only the first `quick` of each unless
    `EVENFLOW_SEEDS` is set.
    """
    length = size if TOLD or quick is None else quick
    return [range(first, first + length) for first in range(0, max(1, round(seeds * times / size)) * size, size)]


def blocks_of(seeds_of: Mapping[Callable[[], Any], int], size: int, times: float, quick: int | None = None) -> list[Any]:
    """Return flows, each with a block of seeds, as parameters of a test."""
    return [
        pytest.param(make_flow, block, id=f"{make_flow.__name__}-{block.start}")
        for make_flow, seeds in seeds_of.items()
        for block in blocks(seeds, size, times, quick)
    ]
