"""One second of the heat map: the loads of the key groups in the order of their owners, in a bounded number of rows.

>>> load, owners = np.array([0.1, 0.9, 0.0, 0.2]), np.array([0, 1, 0, 1])
>>> order = by_owner(owners)
>>> order.tolist(), bands(owners, 2)
([0, 2, 1, 3], [2, 2])
>>> [rows.tolist() for rows in rows_of(load, order, 2)]
[[0.10000000149011612, 0.8999999761581421], [0, 1]]
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.protocol.ids import index_of
from ..engine.protocol.routing import RoutingTable
from ..scheduler.load.window import WorkerWindow

ROWS = 256
"""The most rows of a column: as many as a screen can show."""

ARROWS = 6
"""The number of groups, hottest first, whose move between two workers is drawn individually."""

STRIDE = 633
"""An odd number near the golden section of 1,024: its multiples visit all of a power of two in an even spread."""

Owners = npt.NDArray[Any]
Loads = npt.NDArray[np.float64]


def drawn_owners(table: RoutingTable) -> Owners:
    """Return the worker with which each key group is drawn, shape (groups,).

    It is the group's owner, or that of a key of the group with a route of its own: such a key is hot, and most of its group's load.
    """
    owners = table.groups.copy()
    for key, worker in table.keys.items():
        owners[key % len(owners)] = worker
    return owners


def by_owner(owners: Owners) -> npt.NDArray[np.int64]:
    """Sort the key groups by owner, shape (groups,), those of one owner so that near numbers are far apart.

    Workers begin with consecutive groups. By number, each group from a neighbour would be at the edge between the two, out of sight.
    """
    mixed = np.argsort(np.arange(len(owners)) * STRIDE % len(owners))
    return mixed[np.argsort(owners[mixed], kind="stable")]


def bands(owners: Owners, workers: int) -> list[int]:
    """Count the key groups of each worker."""
    return [int(count) for count in np.bincount(owners, minlength=workers)]


def rows_of(load: Loads, order: npt.NDArray[np.int64], most: int = ROWS) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint16]]:
    """Join neighbouring groups to at most `most` rows: the load of the hottest group of each row, and that group's number."""
    rows = min(len(order), most)
    cut = order.reshape(rows, -1)  # the number of key groups is a power of two, and so is `most`
    hottest = load[cut].argmax(axis=1)
    groups = cut[np.arange(rows), hottest]
    return load[groups].astype(np.float32), groups.astype(np.uint16)


def moves(before: Owners, after: Owners, load: Loads) -> list[dict[str, Any]]:
    """List the key groups that have changed owner, by pair of workers, with the hottest of them and their rows before and after."""
    if len(before) != len(after):
        return []
    changed = np.flatnonzero(before != after)
    rows = min(len(after), ROWS)
    places = [np.argsort(by_owner(owners)) * rows // len(owners) for owners in (before, after)]
    pairs: dict[tuple[int, int], list[int]] = {}
    for group in changed[np.argsort(-load[changed], kind="stable")].tolist():
        pairs.setdefault((int(before[group]), int(after[group])), []).append(group)
    return [
        {
            "from": source,
            "to": target,
            "count": len(groups),
            "groups": [[group, int(places[0][group]), int(places[1][group])] for group in groups[:ARROWS]],
        }
        for (source, target), groups in pairs.items()
    ]


def owners_before(later: Owners, windows: Iterable[WorkerWindow]) -> Owners:
    """Infer the owners in a second with these windows from the owners of the next second.

    A group belonged to another worker if that worker measured load for it and its later owner did not. A group without load keeps its
    owner.

    >>> windows = [WorkerWindow("count-1", 4.0, 1.0, groups=np.array([0, 1], np.int32), load=np.array([0.1, 0.1]))]
    >>> owners_before(np.array([0, 1, 0]), windows).tolist()
    [1, 1, 0]

    """
    other = np.full(len(later), -1)
    by_later_owner = np.zeros(len(later), np.bool_)
    for window in windows:
        index = index_of(window.worker)
        own = later[window.groups] == index
        by_later_owner[window.groups[own]] = True
        other[window.groups[~own]] = index
    moved = (other >= 0) & ~by_later_owner
    return np.where(moved, other, later) if moved.any() else later


def packed(values: npt.NDArray[Any]) -> str:
    """Encode an array as base64, little-endian."""
    return b64encode(values.astype(values.dtype.newbyteorder("<")).tobytes()).decode()
