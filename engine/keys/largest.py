"""Selection of the largest of many counts.

Counts of skewed keys are a few large numbers among thousands of ones. numpy's selection takes up to twenty times as long for
these as for random numbers; so a histogram of the counts up to 255 separates them first.

>>> sorted(largest(np.array([1, 7, 1, 900, 1, 3]), 2).tolist())
[1, 3]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FEW = 1_024
"""The number of counts above which the histogram pays off."""

_TOP = 255


def largest(counts: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Return the indices of the `most` largest counts in any order; all indices if there are no more.

    No count may be negative.
    """
    if len(counts) <= most:
        return np.arange(len(counts))
    if len(counts) <= FEW:
        return np.argpartition(counts, -most)[-most:]
    clipped = np.minimum(counts, _TOP)
    at_least = np.bincount(clipped, minlength=_TOP + 1)[::-1].cumsum()
    level = _TOP - int(np.searchsorted(at_least, most))
    where = np.flatnonzero(clipped >= level)
    if level == _TOP:
        return where[np.argpartition(counts[where], -most)[-most:]]
    above = clipped[where] > level
    return np.concatenate([where[above], where[~above]])[:most]
