"""A join of Zipf keys as counts of rows, without time: which worker gets how many, as routing tables and the balancer decide.

The figures depend on the seed and not on the machine. A row costs the same at every worker; a copy costs as much as the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..engine.protocol.ids import WorkerId
from ..engine.protocol.routing import RoutingTable, even_table
from ..scheduler.configs.balance import OFF, BalanceConfig
from ..scheduler.configs.job import JobConfig
from ..scheduler.load.load_snapshot import hash_of
from ..scheduler.load.window import WorkerWindow
from ..scheduler.parts.balancing import Balancing
from ..state.hashing import group_of

Counts = npt.NDArray[np.float64]

KEYS, KEY_GROUPS, ROWS = 1_000, 1_024, 100_000
RIGHT = 0.05
"""The part of the rows that come from the right side; those of a split key go to all its workers."""

WINDOWS, LAST = 40, 10
"""Windows of `ROWS` rows, and how many at the end are reported."""

HOT = 16
"""Keys that a worker reports."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Means over the last windows. `imbalance`: of the workers' rows. `capacity`: rows that come in while one worker takes one row, when
    the hottest worker is always busy: at best as many as there are workers.
    """

    imbalance: float
    capacity: float
    splits: int


def counted(zipf: float, workers: int, balance: BalanceConfig) -> Counted:
    """The course of one stream; what is decided holds from the next window on."""
    names = tuple(WorkerId(f"joined-{index}") for index in range(workers))
    config = JobConfig(parallelism=workers, key_groups=KEY_GROUPS, balance=balance)
    balancing = Balancing(balance.policy, names, config, ("left",)) if balance.policy != OFF else None
    hashes = np.array([hash_of(key) for key in range(KEYS)], np.uint64)
    weights = 1.0 / np.arange(1, KEYS + 1) ** zipf
    random, table, found = np.random.default_rng(7), even_table(KEY_GROUPS, workers), list[tuple[float, float]]()
    for at in range(WINDOWS):
        left, right = (random.multinomial(int(ROWS * part), weights / weights.sum()) for part in (1 - RIGHT, RIGHT))
        lefts, rows = routed(left, right, hashes, table, workers)
        totals = rows.sum(axis=1)
        found.append((float(totals.max() / totals.mean()), float(ROWS / totals.max())))
        if balancing is not None:
            for window in windows(at, names, lefts, rows, hashes):
                balancing.add(window, table)
            decided = balancing.decide(table, moving=False)
            table = decided.target if decided is not None else table
    imbalance, capacity = np.array(found[-LAST:]).mean(axis=0).tolist()
    return Counted(imbalance, capacity, len(table.splits))


def routed(
    left: npt.NDArray[np.int64], right: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint64], table: RoutingTable, workers: int
) -> tuple[Counts, Counts]:
    """Rows of left, and of both sides, by worker and key, shape (workers, keys)."""
    owners, lefts, rights = table.owners(hashes), np.zeros((workers, len(hashes))), np.zeros((workers, len(hashes)))
    every = np.arange(len(hashes))
    lefts[owners, every], rights[owners, every] = left, right
    for key, split in table.splits.items():
        at = int(np.flatnonzero(hashes == np.uint64(key))[0])
        sharing = list(split.workers)
        lefts[sharing, at], rights[sharing, at] = left[at] / len(sharing), right[at]
    return lefts, lefts + rights


def windows(at: int, names: tuple[WorkerId, ...], lefts: Counts, rows: Counts, hashes: npt.NDArray[np.uint64]) -> Iterator[WorkerWindow]:
    """What the workers report of a window of a second, in which the hottest is always busy."""
    groups = group_of(hashes, KEY_GROUPS).astype(np.int64)
    cost = 1.0 / float(rows.sum(axis=1).max())
    for name, mine, of_left in zip(names, rows, lefts, strict=True):
        by_group = np.bincount(groups, mine, KEY_GROUPS).astype(np.float64)
        present, hottest = np.flatnonzero(by_group), np.argsort(-mine, kind="stable")[:HOT]
        yield WorkerWindow(
            name, float(at), 1.0, useful=float(mine.sum()) * cost, keyed_records=int(mine.sum()), groups=present.astype(np.int32),
            load=by_group[present] * cost, hot_keys=tuple((int(key), int(mine[key])) for key in hottest if mine[key] >= 1),
            hot_left=tuple(int(of_left[key]) for key in hottest if mine[key] >= 1),
        )  # fmt: skip
