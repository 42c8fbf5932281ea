"""Columns that grow in place, so that a table of millions of keys doesn't stop for a copy of itself.

>>> column = np.arange(3)
>>> longer(column, np.zeros(2, np.int64)).tolist()
[0, 1, 2, 0, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

LEAST, SHARE = 65_536, 8
"""A table grows by this number of rows, or by its eighth part if that is more; a small table doubles."""

Column = npt.NDArray[Any]


def growth(rows: int) -> int:
    """Return the number of rows by which a table of `rows` rows grows.

    >>> growth(1_000), growth(100_000), growth(8_000_000)
    (1000, 65536, 1000000)
    """
    return min(rows, max(LEAST, rows // SHARE))


def longer(column: Column, more: Column) -> Column:
    """Return the column with the rows `more` at its end. It takes over the memory of `column`: no view of that may be in use.

    The system moves the pages of a large column without copying them.
    """
    if not column.flags.owndata or column.dtype.hasobject or column.dtype != more.dtype:
        return np.concatenate([column, more])
    rows = len(column)
    column.resize((rows + len(more), *column.shape[1:]), refcheck=False)
    column[rows:] = more
    return column
