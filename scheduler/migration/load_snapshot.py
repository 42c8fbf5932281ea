"""From the workers' windows and a routing table to the snapshot that balancers decide by."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from ...balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot
from ...engine.keys.encoding import key_hashes
from ...engine.protocol.routing import RoutingTable
from ...state.hashing import group_of
from ..load.window import WorkerWindow

STEP_BYTES = 1 << 20
"""State that a pair of workers hands over in one batched step: giving it stops a worker for a few milliseconds, which is about what a step
waits for anyway, for its markers to come through."""


def groups_per_step(newest: Sequence[WorkerWindow | None], table: RoutingTable) -> int:
    """How many key groups make about `STEP_BYTES` of state, by the newest window of each worker; 1 where nothing is known."""
    sizes = [
        window.state_bytes / owned
        for worker, window in enumerate(newest)
        if window is not None and (owned := int(np.count_nonzero(table.groups == worker)))
    ]
    largest = max(sizes, default=0.0)
    return max(1, int(STEP_BYTES / largest)) if largest else 1


def hash_of(key: Hashable) -> int:
    """hash64 of a key as users write it: a value, or a tuple of values for a key of several columns.

    Raises RecordError for a value that can't be a key.
    """
    columns = [pa.array([value]) for value in (key if isinstance(key, tuple) else (key,))]
    return int(key_hashes(columns, "migrate")[0])


def load_snapshot(windows: Sequence[Sequence[WorkerWindow]], table: RoutingTable) -> LoadSnapshot:
    """The load of an operator: `windows[i]` are those of worker i that count; loads are useful seconds per second.

    A worker's state is taken to be shared evenly by its key groups. The load of split keys is left out: no move of a balancer changes it.
    """
    loads, sizes = np.zeros(len(table)), np.zeros(len(table), np.int64)
    hot: dict[Hashable, float] = {}
    for worker, history in enumerate(windows):
        length = max(sum(window.length for window in history), 1e-9)
        owned = np.flatnonzero(table.groups == worker)
        if history and len(owned):
            sizes[owned] = history[-1].state_bytes // len(owned)
        for window in history:
            loads[window.groups] += window.load / length
            per_record = float(window.load.sum()) / window.keyed_records / length if window.keyed_records else 0.0
            for key, count in window.hot_keys:
                if table.splits and (hashed := hash_of(key)) in table.splits:
                    loads[group_of(np.array([hashed], np.uint64), len(table))] -= count * per_record
                else:
                    hot[key] = hot.get(key, 0.0) + count * per_record
    loads = np.maximum(loads, 0.0)
    groups = [GroupLoad(i, int(w), float(x), int(b)) for i, (w, x, b) in enumerate(zip(table.groups, loads, sizes, strict=True))]
    return LoadSnapshot(len(windows), groups, _hot_keys(hot, loads, table))


def _hot_keys(hot: dict[Hashable, float], loads: np.ndarray[tuple[int], np.dtype[np.float64]], table: RoutingTable) -> list[KeyLoad]:
    """The hot keys, cut so that those of a group are together not hotter than the group."""
    left, keys = loads.copy(), []
    for key, load in sorted(hot.items(), key=lambda item: -item[1]):
        hashed = hash_of(key)
        group = int(group_of(np.array([hashed], np.uint64), len(table))[0])
        part = min(load, float(left[group]))
        left[group] -= part
        if part > 0:
            keys.append(KeyLoad(key, group, part, 0, table.keys.get(hashed)))
    return keys
