"""Builds the snapshot that balancers decide by, from the workers' windows and a routing table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from ...balancer.snapshot import LoadSnapshot
from ...balancer.window import WorkerLoad, snapshot_of
from ...engine.keys.encoding import key_hashes
from ...engine.keys.typed_key import UNSIGNED, key_array
from ...engine.protocol.routing import RoutingTable
from ...engine.protocol.split_route import Dealt
from ...state.hashing import Hashes, combine, group_of, mix
from .window import WorkerWindow

STEP_BYTES, MOST_BYTES = 1 << 18, 1 << 20
"""State that a pair of workers hands over in one batched step, and the most of it in a migration of many steps.

A quarter of a MiB is a chunk or two: the records of its keys wait for a few milliseconds, about as long as a step waits for its markers.
"""

STEPS = 128
"""The steps of a pair of workers beyond which each has more state: where records queue, a step waits for its markers for up to 100 ms."""


def groups_per_step(newest: Sequence[WorkerWindow | None], table: RoutingTable, target: RoutingTable) -> int:
    """Return the number of key groups that a pair of workers moves in a step from `table` to `target`; 1 without measurements.

    By the newest window of each worker, they hold about `STEP_BYTES` of state; `MOST_BYTES` at most if there are more than `STEPS` steps.
    """
    sizes = [
        window.state_bytes / owned
        for worker, window in enumerate(newest)
        if window is not None and (owned := int(np.count_nonzero(table.groups == worker)))
    ]
    largest = max(sizes, default=0.0)
    if not largest:
        return 1
    pairs = table.groups.astype(np.int64) << 16 | target.groups
    most_moved = np.unique(pairs[table.groups != target.groups], return_counts=True)[1].max(initial=0)
    return max(1, int(STEP_BYTES / largest), min(-(-int(most_moved) // STEPS), int(MOST_BYTES / largest)))


def group_loads(newest: Sequence[WorkerWindow | None], table: RoutingTable) -> npt.NDArray[np.float64] | None:
    """Return the load of each key group in the newest window of each worker, shape (key_groups,); None without measurements."""
    loads = np.zeros(len(table))
    for window in newest:
        if window is not None:
            loads[window.groups] += window.load
    return loads if loads.any() else None


def hash_of(key: Hashable) -> int:
    """Return the hash64 of a key as users write it: a value, or a tuple of values for a key of several columns.

    Raises RecordError for a value that can't be a key.
    """
    columns = [key_array(value) for value in (key if isinstance(key, tuple) else (key,))]
    return int(key_hashes(columns, "migrate")[0])


def hashes_of(keys: Sequence[Hashable]) -> list[int]:
    """Return the hash64 of each key, as `hash_of` does, but at once, and without Arrow, where the keys are texts or whole numbers.

    Arrow imports pandas, where it is installed, for its first value: a quarter of a second, which a coordinator does not need.
    """
    found = _plain_hashes(keys)
    return [hash_of(key) for key in keys] if found is None else found.tolist()


def _plain_hashes(keys: Sequence[Any]) -> Hashes | None:
    """Return the hashes of texts, of whole numbers, or of tuples of these, shape (keys,); None for other keys."""
    alike = {type(key) for key in keys}
    if alike == {str}:
        return np.array([xxh3_64_intdigest(key.encode()) for key in keys], np.uint64)
    if alike == {int} and all(-UNSIGNED <= key < UNSIGNED for key in keys):
        return mix(np.array(keys, np.int64).view(np.uint64))
    if alike == {tuple} and len({len(key) for key in keys}) == 1:
        columns = [_plain_hashes(column) for column in zip(*keys, strict=True)]
        known = [column for column in columns if column is not None]
        return combine(known) if len(known) == len(columns) else None
    return None


def worker_load(
    worker: int,
    history: Sequence[WorkerWindow],
    owned: npt.NDArray[np.int64],
    key_groups: int,
    hashed: Callable[[Hashable], int] = hash_of,
    since: float = float("inf"),
) -> WorkerLoad:
    """Return the mean load of a worker over its windows `history`, oldest first, in useful seconds per second.

    The mean is over the time from `since` on, if that is before the first window: both workers of a key that moved have a part of
    that time. The worker's state is assumed to be shared evenly by its key groups, `owned` (in rising order) of all `key_groups`; in a
    join, hot keys have the same part of their group's state as of its load. `hashed` gives a key's hash64.
    """
    begun, ended = (history[0].start, history[-1].start + history[-1].length) if history else (0.0, 0.0)
    length = max(ended - min(since, begun), 1e-9)
    measured = [(window.groups[at], window.load[at]) for window in history for at in (window.load > 0,)]
    groups = _with_owned(owned, [found for found, _ in measured])
    loads = np.zeros(len(groups))
    for found, load in measured:
        loads[np.searchsorted(groups, found)] += load / length
    keys, key_loads, key_left = _hot_keys(history, length)
    sizes = np.zeros(len(groups), np.int64)
    sizes[slice(None) if groups is owned else np.searchsorted(groups, owned)] = (
        history[-1].state_bytes // max(len(owned), 1) if history else 0
    )
    hashes = np.array([hashed(key) for key in keys], np.uint64)
    joins = any(window.hot_left for window in history)
    return WorkerLoad(
        worker,
        history[-1].start if history else 0.0,
        groups,
        loads,
        sizes,
        hashes,
        key_loads,
        _key_bytes(group_of(hashes, key_groups), key_loads, groups, loads, sizes) if joins else np.zeros(0, np.int64),
        key_left=key_left,
        records=sum(window.keyed_records for window in history),
    )


def _with_owned(owned: npt.NDArray[np.int64], measured: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
    """Return the owned key groups and the measured ones, in rising order: mostly `owned` itself."""
    found = measured[0] if len(measured) == 1 else np.concatenate([owned[:0], *measured])
    at = np.searchsorted(owned, found)
    return owned if np.array_equal(owned.take(at, mode="clip") if len(owned) else at[:0], found) else np.union1d(owned, found)


def _hot_keys(history: Sequence[WorkerWindow], length: float) -> tuple[list[Hashable], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the hot keys of the windows, the load of each, and the part of it from the left side of a join."""
    keys: list[Hashable] = []
    loads, lefts = [], []
    for window in history:
        per_record = float(window.load.sum()) / window.keyed_records / length if window.keyed_records else 0.0
        keys += [key for key, _ in window.hot_keys]
        loads.append(np.array([records for _, records in window.hot_keys], np.float64) * per_record)
        lefts.append(np.array(window.hot_left or (0,) * len(window.hot_keys), np.float64) * per_record)
    if len(history) == 1:
        return keys, loads[0], lefts[0]
    names = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    at = np.array([names[key] for key in keys], np.intp)
    sums = np.zeros((2, len(names)))
    for row, parts in enumerate((loads, lefts)):
        np.add.at(sums[row], at, np.concatenate([np.zeros(0), *parts]))
    return list(names), sums[0], sums[1]


def _key_bytes(
    key_group: npt.NDArray[np.uint16],
    key_load: npt.NDArray[np.float64],
    groups: npt.NDArray[np.int64],
    loads: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    at = np.minimum(np.searchsorted(groups, key_group), len(groups) - 1)
    part = np.minimum(key_load / np.maximum(loads[at], 1e-12), 1.0)
    return np.where(groups[at] == key_group, part * sizes[at], 0).astype(np.int64)


def owned_groups(table: RoutingTable, workers: int) -> list[npt.NDArray[np.int64]]:
    """Return the key groups of each of the first `workers` workers, in rising order."""
    order = np.argsort(table.groups, kind="stable")
    edges = np.searchsorted(table.groups[order], np.arange(workers + 1))
    return [order[first:last] for first, last in pairwise(edges.tolist())]


def load_snapshot(windows: Sequence[Sequence[WorkerWindow]], table: RoutingTable, dealable: tuple[Dealt, ...] = ()) -> LoadSnapshot:
    """Return the load of an operator. `windows[i]` are the windows of worker i to use; loads are useful seconds per second.

    Its keys are those that some window names, hottest first. `dealable`: the sides of the operator whose rows may be dealt.
    """
    hashes = {key: hash_of(key) for key in dict.fromkeys(key for history in windows for window in history for key, _ in window.hot_keys)}
    names: dict[Hashable, Hashable] = {hashed: key for key, hashed in hashes.items()}
    owned = owned_groups(table, len(windows))
    since = min((history[0].start for history in windows if history), default=0.0)
    loads = [worker_load(worker, history, owned[worker], len(table), hashes.__getitem__, since) for worker, history in enumerate(windows)]
    seen = snapshot_of(loads, table, len(windows), dealable)
    hot = sorted((key for key in seen.hot_keys if key.key in names and key.load > 0), key=lambda key: -key.load)
    return LoadSnapshot(
        seen.workers,
        seen.key_groups,
        [key._replace(key=names[key.key]) for key in hot],
        [split._replace(key=names[split.key]) for split in seen.split_keys if split.key in names],
        dealable,
    )
