"""The slots of the keys in key columns: looked up a batch at a time while all keys are integers of one type, otherwise one by one.

>>> slots = KeySlots("count")
>>> slots.of([pa.array([7, 8, 7])]).tolist(), slots.of([pa.array([8, None])]).tolist()
([0, 1, 0], [1, 2])
>>> slots.keys(np.array([0, 2]))
[7, None]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.key_index import DictIndex, IntegerIndex, Where
from ...state.slots import Slots
from .encoding import KeyTypes, key_hashes, key_values


class KeySlots(Slots):
    """`operator` is named in errors. Keys that go in and come out one by one are Python values, as `key_values` gives them."""

    def __init__(self, operator: str) -> None:
        super().__init__(IntegerIndex())
        self._operator = operator
        self.types = KeyTypes()

    def of(self, columns: Sequence[pa.Array]) -> Where:
        """The slots of the rows of these key columns; new keys get one. Raises RecordError for a type that can't be a key."""
        self.types.learn(columns)

        def hashes(places: Where) -> npt.NDArray[np.uint64]:
            some = pa.array(places)
            return key_hashes([column.take(some) for column in columns], self._operator)

        return self.find(self._keys_of(columns), hashes)

    def known(self, keys: list[Any]) -> Where:
        if keys and isinstance(self.index, IntegerIndex):
            values = np.array(keys)
            if values.dtype == np.int64 and values.ndim == 1:
                return super().known(values)
            self._take_any()
        return super().known(keys) if keys else np.zeros(0, np.int64)

    def columns(self, where: Where) -> list[pa.Array]:
        """The key columns of these slots."""
        if isinstance(self.index, IntegerIndex) and self.types.types:
            return [pa.array(self.index.values[where]).cast(self.types.types[0])]
        return self.types.columns(self.keys(where))

    def _keys_of(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64] | list[Any]:
        """The keys in the form that the index takes."""
        if isinstance(self.index, IntegerIndex):
            column = columns[0]
            kind = self.types.types[0]
            if len(columns) == 1 and column.type == kind and pa.types.is_integer(kind) and kind != pa.uint64() and not column.null_count:
                values: npt.NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
                return values
            self._take_any()
        return key_values(columns)

    def _take_any(self) -> None:
        """Allow keys of any type from now on; existing keys keep their slots."""
        index, where = DictIndex(), self.everything()
        if len(where):
            index.add(self.keys(where), np.arange(len(where)), where)
        self.index = index
