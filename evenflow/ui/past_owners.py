"""Who owned the key groups before anybody asked: what the workers measured tells it.

>>> windows = [WorkerWindow("count-1", 4.0, 1.0, groups=np.array([0, 1], np.int32), load=np.array([0.1, 0.1]))]
>>> owners_before(np.array([0, 1, 0]), windows).tolist()
[1, 1, 0]
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..scheduler.load.window import WorkerWindow
from .heat import Owners


def owners_before(later: Owners, windows: Iterable[WorkerWindow]) -> Owners:
    """The owners in a second with these windows, by those of the next second.

    A group that its later owner had no load of, and another worker had, was that worker's. Of one without load nothing is known: it stays.
    """
    other = np.full(len(later), -1)
    by_owner = np.zeros(len(later), np.bool_)
    for window in windows:
        index = int(window.worker.rpartition("-")[2])
        own = later[window.groups] == index
        by_owner[window.groups[own]] = True
        other[window.groups[~own]] = index
    moved = (other >= 0) & ~by_owner
    return np.where(moved, other, later) if moved.any() else later
