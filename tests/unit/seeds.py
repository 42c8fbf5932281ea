"""How many jobs a module of simulations runs: a part of its full number, or about as many as `EVENFLOW_SEEDS` says, shared out in the same
way.

Seeds come in whole blocks, one block per test: a failure is found and shown early, and what a test counts is always counted over as many
jobs. Unless `EVENFLOW_SEEDS` is set, of a block only the first few seeds run where a test says so.
"""

from __future__ import annotations

import os

TOLD = os.environ.get("EVENFLOW_SEEDS")
QUICKLY = 0.1
"""The part of its full number that a module runs unless it is told: all tests together take ten minutes at most.

Half of the planted faults (`planted/`) show in the first three runs of their flow, and all in the first hundred.
"""


def proportion(full: int) -> float:
    """The factor for all numbers of seeds in a module whose full number of jobs is `full`."""
    return int(TOLD) / full if TOLD else QUICKLY


def blocks(seeds: int, size: int, times: float, quick: int | None = None) -> list[range]:
    """About `times * seeds` seeds in blocks of `size`, and at least one block; of each only the first `quick` unless the number is told."""
    length = size if TOLD or quick is None else quick
    return [range(first, first + length) for first in range(0, max(1, round(seeds * times / size)) * size, size)]
