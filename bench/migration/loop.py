"""Balancing as a closed loop without a cluster: loads by Zipf's law, and a job's own balancing, which changes the next loads.

A key's load in a window is the number of its records, drawn at random by its share; there are no service times. Every `SHIFT` windows all
keys change their ranks. A plan takes effect in the next window. Imbalance is that of the keys' shares, not of what was drawn; bytes count
every key whose worker changes. Balancers act as soon as the load is not good, where a job's default accepts 1.2 times its floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot
from ...connectors.generated.generate import zipf_cdf
from ...engine.keys.encoding import key_hashes
from ...engine.protocol.ids import WorkerId, worker_id
from ...engine.protocol.routing import RoutingTable, even_table
from ...scheduler.configs.balance import OFF, BalanceConfig
from ...scheduler.configs.job import JobConfig
from ...scheduler.load.window import WorkerWindow
from ...scheduler.parts.balancing import Balancing
from ...state.hashing import group_of

KEYS = 100_000
KEY_BYTES = 200
RECORDS_PER_WORKER = 10_000
SHIFT, PERIODS = 10, 5
GOOD = 1.05
"""The goal of balancing, in multiples of the floor."""

SECONDS_PER_RECORD = 50e-6
"""Workers are busy for half of the time on average."""

HOTTEST = 16
"""Keys that a worker reports, as workers of a job do."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Loop:
    """The outcome of one stream: `imbalance` and `floor` per window, shape (windows,); `moves` in (window, group or key) order."""

    imbalance: Floats
    floor: Floats
    moves: tuple[tuple[int, str], ...]
    state_bytes: int
    plans: int

    @property
    def settled(self) -> list[int]:
        """The windows from each shift until the imbalance is within `GOOD` times its floor; `SHIFT` if it never is."""
        good = (self.imbalance <= GOOD * self.floor).reshape(PERIODS, SHIFT)
        return [int(np.argmax(period)) if period.any() else SHIFT for period in good]

    @property
    def last_of_periods(self) -> tuple[Floats, Floats]:
        """Imbalance and floor of the window before each shift, shape (periods,)."""
        return self.imbalance[SHIFT - 1 :: SHIFT], self.floor[SHIFT - 1 :: SHIFT]

    @property
    def ratio(self) -> float:
        """Imbalance over its floor in the window before each shift, the mean."""
        imbalance, floor = self.last_of_periods
        return float((imbalance / floor).mean())

    def moved_again(self, cooldown: int) -> int:
        """Count the groups and keys that moved twice within `cooldown` windows although the keys' ranks had not changed."""
        last: dict[str, int] = {}
        again = 0
        for window, piece in self.moves:
            before = last.get(piece)
            again += before is not None and window - before < cooldown and before // SHIFT == window // SHIFT
            last[piece] = window
        return again


def key_groups_for(workers: int) -> int:
    """Return a power of two with at least 32 groups per worker, 1024 at least."""
    return min(32_768, max(1024, 1 << (32 * workers - 1).bit_length()))


def run_loop(policy: str, zipf: float, workers: int, seed: int = 0) -> Loop:
    """Run a stream for `PERIODS` periods on `workers` workers; the policy `off` keeps the first table."""
    # One generator for the shifts, one for the records: every policy, `off` too, gets the same shifts.
    shifts, random = np.random.default_rng(seed).spawn(2)
    key_groups, names = key_groups_for(workers), tuple(worker_id("operator", i) for i in range(workers))
    config = JobConfig(key_groups=key_groups, balance=BalanceConfig(threshold=GOOD))
    balancing = None if policy == OFF else Balancing(policy, names, config)
    hashes, table = _hashes(), even_table(key_groups, workers)
    imbalance, floors, moves, moved, plans = [], [], list[tuple[int, str]](), 0, 0
    for window, shares in enumerate(shares_by_window(zipf, shifts)):
        owners = table.owners(hashes)
        loads = np.bincount(owners, shares, workers)
        imbalance.append(float(loads.max()) * workers)
        floors.append(max(1.0, float(shares.max()) * workers))
        if balancing is None:
            continue
        for load in windows_of(names, table, hashes, owners, random.multinomial(RECORDS_PER_WORKER * workers, shares), window):
            balancing.add(load, table)
        decided = balancing.decide(table, moving=False)
        if decided is not None:
            plans += 1
            moved += int(np.count_nonzero(decided.target.owners(hashes) != owners)) * KEY_BYTES
            moves += [(window, f"group {move.group}" if move.group is not None else f"key {move.key}") for move in decided.plan.moves]
            table = decided.target
    return Loop(np.array(imbalance), np.array(floors), tuple(moves), moved, plans)


def shares_by_window(zipf: float, random: np.random.Generator) -> Iterator[Floats]:
    """Yield the keys' shares in each window, shape (keys,); all ranks change every `SHIFT` windows."""
    ranked = np.diff(zipf_cdf(KEYS, zipf), prepend=0.0)
    for _ in range(PERIODS):
        shares = random.permutation(ranked)
        shares /= shares.sum()
        for _ in range(SHIFT):
            yield shares


def windows_of(
    names: tuple[WorkerId, ...], table: RoutingTable, hashes: npt.NDArray[np.uint64], owners: npt.NDArray[np.uint16],
    records: npt.NDArray[np.int64], start: float, **measured: Any,
) -> Iterator[WorkerWindow]:  # fmt: skip
    """Yield the reports that the workers would send for these records, in the second that begins at `start`; `measured`: more fields."""
    groups = group_of(hashes, len(table)).astype(np.int64)
    by_owner = np.argsort(owners, kind="stable")
    edges = np.searchsorted(owners[by_owner], np.arange(len(names) + 1))
    for worker, (first, last) in enumerate(pairwise(edges.tolist())):
        mine = by_owner[first:last]
        of_groups = np.bincount(groups[mine], records[mine], len(table))
        present = np.flatnonzero(of_groups)
        hottest = mine[np.argsort(-records[mine])[:HOTTEST]]
        yield WorkerWindow(
            names[worker], start, 1.0, rows_in=int(records[mine].sum()), keyed_records=int(records[mine].sum()),
            useful=float(of_groups.sum() * SECONDS_PER_RECORD), state_bytes=len(mine) * KEY_BYTES, groups=present.astype(np.int32),
            load=(of_groups[present] * SECONDS_PER_RECORD).astype(np.float64),
            hot_keys=tuple(zip(hottest.tolist(), records[hottest].tolist(), strict=True)), **measured,
        )  # fmt: skip


def first_snapshot(zipf: float, workers: int, seed: int = 0, key_groups: int | None = None) -> LoadSnapshot:
    """Return the loads of the first window with the first table, by the keys' shares; the 16 hottest keys per worker are known."""
    shares = next(shares_by_window(zipf, np.random.default_rng(seed).spawn(1)[0]))
    table = even_table(key_groups_for(workers) if key_groups is None else key_groups, workers)
    groups = group_of(_hashes(), len(table)).astype(np.int64)
    loads = np.bincount(groups, shares, len(table))
    hottest = np.argsort(-shares)[: HOTTEST * workers]
    return LoadSnapshot(
        workers,
        [GroupLoad(group, int(worker), float(load)) for group, (worker, load) in enumerate(zip(table.groups, loads, strict=True))],
        [KeyLoad(int(key), int(groups[key]), float(shares[key])) for key in hottest],
    )


def _hashes() -> npt.NDArray[np.uint64]:
    return key_hashes([pa.array(np.arange(KEYS))], "skew")
