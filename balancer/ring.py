"""The points of key groups and workers on a ring of 2**64 points, the same in every process.

>>> group_points(np.array([0, 1, 2])).tolist() == group_points(np.array([0, 1, 2])).tolist()
True
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..state.hashing import mix

Points = npt.NDArray[np.uint64]

_SALT = np.uint64(0x6261_6C61_6E63_6572)


def group_points(groups: npt.NDArray[np.int64], choice: int = 0) -> Points:
    """Return a point for each group; another for each `choice`."""
    return mix(mix(groups.astype(np.uint64)) + np.uint64(choice))


def worker_points(workers: int, points_each: int) -> Points:
    """Return the points of each worker, shape (workers, points_each)."""
    owners = mix(np.arange(workers).astype(np.uint64) ^ _SALT)
    return mix(owners[:, None] + np.arange(points_each).astype(np.uint64))
