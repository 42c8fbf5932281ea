"""The rows of a batch sorted by key, for functions that work on all keys at once.

>>> rows = KeyRows({"value": np.array([1.0, 3.0, 10.0])}, lengths=np.array([2, 1]))
>>> rows.running_sum("value", start=np.array([100.0, 0.0])).tolist()
[101.0, 104.0, 10.0]
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..types.arrays import Array

SHORT = 32
"""The length up to which runs are summed side by side; longer ones are summed one by one."""


class KeyRows:
    """The rows of a batch by key: `rows[column]` is a numpy array, shape (rows,), key after key, each in arrival order.

    `lengths`: rows of each key, shape (keys,). State arrays have one entry per key in the same order. `selected`: the last mask
    passed to `where`.
    """

    def __init__(self, columns: Mapping[str, Array], lengths: npt.NDArray[np.int64]) -> None:
        self.columns = dict(columns)
        self.lengths = lengths
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths
        self.selected: npt.NDArray[np.bool_] | None = None

    def __getitem__(self, column: str) -> Array:
        return self.columns[column]

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def spread(self, values: Array) -> Array:
        """Repeat a value per key, shape (keys,), to a value per row, shape (rows,)."""
        spread: Array = np.repeat(values, self.lengths)
        return spread

    def first(self, values: Array) -> Array:
        """Return the first of each key's values, shape (keys,), from values per row."""
        first: Array = values[self.starts]
        return first

    def last(self, values: Array) -> Array:
        """Return the last of each key's values, shape (keys,), from values per row."""
        last: Array = values[self.ends - 1]
        return last

    @property
    def is_last(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the last row of each key, shape (rows,): `rows.where(rows.is_last, ...)` are results of a row per key.

        >>> KeyRows({"value": np.array([1.0, 3.0, 10.0])}, lengths=np.array([2, 1])).is_last.tolist()
        [False, True, True]
        """
        mask = np.zeros(len(self), np.bool_)
        mask[self.ends - 1] = True
        return mask

    def running_count(self, start: Array) -> npt.NDArray[np.int64]:
        """Number each key's rows, shape (rows,), continuing from the key's `start`, shape (keys,)."""
        counts: npt.NDArray[np.int64] = np.arange(1, len(self) + 1) + self.spread(start - self.starts)
        return counts

    def running_sum(self, values: str | Array, start: Array) -> Array:
        """Return the running sum of each key's values, shape (rows,), continuing from the key's `start`, shape (keys,).

        The additions have the same order as in a loop, so sums of floats are the same to the last bit for all cuts of the stream
        into batches.
        """
        values = self.columns[values] if isinstance(values, str) else values
        sums = np.array(values, np.result_type(values, start))
        sums[self.starts] += start
        short = np.flatnonzero((self.lengths > 1) & (self.lengths <= SHORT))
        short = short[np.argsort(-self.lengths[short])]
        remaining = self.lengths[short]
        for step in range(1, SHORT):
            active = self.starts[short[: np.searchsorted(-remaining, -step)]] + step
            if not len(active):
                break
            sums[active] += sums[active - 1]
        for key in np.flatnonzero(self.lengths > SHORT).tolist():
            run = slice(self.starts[key], self.ends[key])
            np.cumsum(sums[run], out=sums[run])
        return sums

    def where(self, mask: npt.NDArray[np.bool_], **more: Array) -> dict[str, Array]:
        """Return the rows for which `mask` is true, as output columns.

        Columns in `more`, shape (rows,), are added or replace others.
        """
        self.selected = mask
        return {name: column[mask] for name, column in {**self.columns, **more}.items()}
