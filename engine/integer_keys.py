"""Keys at slots as an array, while all are integers of one type: to turn a million of them back into a column takes milliseconds.

>>> keys = IntegerKeys()
>>> keys.put(np.array([0, 1]), [pa.array([7, 8, 9])], np.array([0, 2]), capacity=4)
>>> keys.columns(np.array([1, 0]))[0].to_pylist()
[9, 7]
>>> keys.put(np.array([2]), [pa.array(["a"])], np.array([0]), capacity=4)
>>> keys.columns(np.array([1])) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..state.slots import Where


class IntegerKeys:
    """Knows all keys or none: the first that isn't an integer like the others ends it."""

    def __init__(self) -> None:
        self._values: npt.NDArray[Any] | None = None
        self._type: pa.DataType | None = None
        self._ended = False

    def put(self, where: Where, columns: Sequence[pa.Array], places: Where, capacity: int) -> None:
        """The keys at `places` of the key columns have got the slots `where`, all of which are below `capacity`."""
        column = columns[0]
        if self._ended or len(columns) > 1 or not pa.types.is_integer(column.type) or column.null_count:
            self._end()
            return
        values = column.to_numpy()
        if self._values is None:
            self._values, self._type = np.zeros(capacity, values.dtype), column.type
        elif column.type != self._type:
            self._end()
            return
        if capacity > len(self._values):
            self._values = np.concatenate([self._values, np.zeros(capacity - len(self._values), values.dtype)])
        self._values[where] = values[places]

    def columns(self, where: Where) -> list[pa.Array] | None:
        """The key columns of these slots; None if they are not known."""
        return None if self._values is None else [pa.array(self._values[where])]

    def _end(self) -> None:
        self._ended, self._values = True, None
