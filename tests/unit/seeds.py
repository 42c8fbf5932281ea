"""How many jobs a module of simulations runs: its usual number, or about as many as `EVENFLOW_SEEDS` says, shared out in the same way.

Seeds come in whole blocks, one block per test: a failure is found and shown early, and what a test counts is always counted over as many
jobs.
"""

from __future__ import annotations

import os


def proportion(usual: int) -> float:
    """The factor for all numbers of seeds in a module that usually simulates `usual` jobs."""
    wanted = os.environ.get("EVENFLOW_SEEDS")
    return int(wanted) / usual if wanted else 1.0


def blocks(seeds: int, size: int, times: float) -> list[range]:
    """About `times * seeds` seeds in blocks of `size`, and at least one block."""
    return [range(first, first + size) for first in range(0, max(1, round(seeds * times / size)) * size, size)]
