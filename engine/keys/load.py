"""Counts of a worker's records by key group, and its hottest keys: the raw data of the load figures.

Counts are records; the driver, which has a clock, turns them into useful time. When batches, or keys, arrive fast, one in
`EVERY` is counted: the shares stay accurate, and counting all would cost throughput. The hottest keys of every batch go into
a Misra-Gries frequent-items sketch (1982) of `HOT_KEYS` keys, so that a key that is hot batch after batch is never missed.
The left side of a join has a sketch of its own, because splitting a hot key requires to know which side makes it hot.

>>> load = KeyLoad(key_groups=4)
>>> load.add(np.array([1, 1, 3]), np.array([10, 5, 1]))
>>> load.take().tolist()
[0, 15, 0, 1]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..protocol.split_route import Dealt

HOT_KEYS = 64
"""Keys that the sketch keeps: the worst error of a count is the records seen / HOT_KEYS."""

EXACT, EXACT_KEYS = 32, 32_768
"""The batches, and their keys together, up to which every batch after a `take` is counted."""

EVERY = 4
"""The number of batches that a counted batch stands for after that."""


HISTOGRAM_FROM = 1_024
"""The number of counts above which the histogram pays off."""

_TOP = 255


class KeyLoad:
    """The records per key group, shape (key_groups,), and the hottest keys, since the last `take` and `take_hot`."""

    def __init__(self, key_groups: int, enabled: bool = True) -> None:
        self._enabled = enabled
        self._batches = self._keys = 0
        self.records: npt.NDArray[np.int64] = np.zeros(key_groups, np.int64)
        self.hot: dict[Any, int] = {}
        self.hot_left: dict[Any, int] = {}
        self.touched = False

    def due(self) -> bool:
        """Return True if the next batch should be counted; called once a batch."""
        self._batches += self._enabled
        exact = self._batches <= EXACT and self._keys < EXACT_KEYS
        return self._enabled and (exact or self._batches % EVERY == 0)

    def add(self, groups: npt.NDArray[Any], counts: npt.NDArray[np.int64] | None = None) -> None:
        """Count records: `groups` has a key group per row; `counts` the records that each row stands for (default 1)."""
        self.touched = True
        self._keys += len(groups)
        if counts is None:
            self.records += np.bincount(groups, minlength=len(self.records))
        else:
            np.add.at(self.records, groups, counts)

    def add_keys(self, keys: list[Any], counts: list[int], side: Dealt | None = None) -> None:
        """Count records of the given keys, at least the hottest of a batch, in the sketch; `side`: their side of a join."""
        if side == "left":
            self.hot_left = _counted(self.hot_left, keys, counts)
        else:
            self.hot = _counted(self.hot, keys, counts)

    def take(self) -> npt.NDArray[np.int64]:
        """Return the records per key group since the last call, and reset them to zero."""
        records, self.records = self.records, np.zeros_like(self.records)
        self.touched = False
        return records

    def take_hot(self) -> dict[Any, tuple[int, int]]:
        """Return, per hot key, lower bounds of its records since the last call, and of those from the left side of a join."""
        hot, left = self.hot, self.hot_left
        self.hot, self.hot_left, self._batches, self._keys = {}, {}, 0, 0
        return {key: (hot.get(key, 0) + left.get(key, 0), left.get(key, 0)) for key in {**hot, **left}}


def _counted(hot: dict[Any, int], keys: list[Any], counts: list[int]) -> dict[Any, int]:
    """Return the sketch after adding these records."""
    for key, count in zip(keys, counts, strict=True):
        hot[key] = hot.get(key, 0) + count
    if len(hot) <= HOT_KEYS:
        return hot
    cut = sorted(hot.values(), reverse=True)[HOT_KEYS]
    return {key: count - cut for key, count in hot.items() if count > cut}


def largest(counts: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Return the indices of the `most` largest counts in any order; all indices if there are no more.

    No count may be negative. Counts of skewed keys are a few large numbers among thousands of ones. numpy's selection takes up to
    twenty times as long for these as for random numbers; so a histogram of the counts up to 255 separates them first.

    >>> sorted(largest(np.array([1, 7, 1, 900, 1, 3]), 2).tolist())
    [1, 3]
    """
    if len(counts) <= most:
        return np.arange(len(counts))
    if len(counts) <= HISTOGRAM_FROM:
        return np.argpartition(counts, -most)[-most:]
    clipped = np.minimum(counts, _TOP)
    at_least = np.bincount(clipped, minlength=_TOP + 1)[::-1].cumsum()
    level = _TOP - int(np.searchsorted(at_least, most))
    where = np.flatnonzero(clipped >= level)
    if level == _TOP:
        return where[np.argpartition(counts[where], -most)[-most:]]
    above = clipped[where] > level
    return np.concatenate([where[above], where[~above]])[:most]
