"""The slots of the keys in key columns: looked up a batch at a time while all keys have words, otherwise one by one.

>>> slots = KeySlots("count")
>>> slots.of([pa.array([7, 8, 7])]).tolist(), slots.of([pa.array([8, None])]).tolist()
([0, 1, 0], [1, 2])
>>> [column.to_pylist() for column in slots.keys(np.array([0, 2]))]
[[7, None]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.key_index import DictIndex
from ...state.slots import Slots
from ...state.word_index import WordIndex
from ...state.words import Where, Words
from ..protocol.routing import Move
from .encoding import KeyTypes, key_hashes, key_values
from .words import column_of, have_words, joined, words_of


class KeySlots(Slots):
    """Slots whose keys are passed and returned as key columns. `operator` and the columns' `names` are for errors."""

    def __init__(self, operator: str, names: Sequence[str] = ()) -> None:
        super().__init__(DictIndex())
        self._operator = operator
        self.types = KeyTypes(operator, names)
        self._widths: list[int] = []
        """The number of words of each key column, while the index has words."""

    def of(self, columns: Sequence[pa.Array]) -> Where:
        """Return the slots of the rows of these key columns; new keys get one.

        Raises RecordError for a type that can't be a key.
        """
        self.learn(columns)

        def hashes(places: Where) -> npt.NDArray[np.uint64]:
            some = pa.array(places)
            return key_hashes([column.take(some) for column in columns], self._operator)

        return self.find(self._form(columns), hashes)

    def learn(self, columns: Sequence[pa.Array]) -> None:
        """Learn the types of key columns. Raises RecordError for one that can't be a key, or not together with the others."""
        first = not self.types.types
        types = self.types.with_types(columns)
        if isinstance(self.index, WordIndex) and any(map(_differ, self.types.types, types)):
            self._take_any()  # the words so far depend on the old types
        self.types.types = types
        if first and all(map(have_words, self.types.types)):
            self._widths = [1] * len(columns)
            self.index = WordIndex(len(columns))

    def known(self, columns: Sequence[pa.Array]) -> Where:
        """Return the slots of the keys in these key columns that have one."""
        return super().known(self._form(columns))

    def places(self, columns: Sequence[pa.Array]) -> Where:
        """Return the slot of each key in these key columns, -1 for a key without one."""
        if not self.types.types:
            return np.full(len(columns[0]), -1)
        keys = self._form(columns)  # first, because it may replace the index
        return self.index.find(keys)

    def leaving(self, move: Move, key_groups: int) -> Where:
        """Return the slots of the keys that `move` selects."""
        return self.where(move.touches(key_groups), key_groups, lambda hashes: move.selects(hashes, key_groups))

    def keys(self, where: Where) -> list[pa.Array]:
        """Return the key columns of these slots."""
        keys, types = self.index.keys(where), self.types.types
        if not isinstance(self.index, WordIndex):
            return self.types.columns(keys)
        ends = np.cumsum(self._widths).tolist()
        return [column_of(keys[end - n : end], kind) for end, n, kind in zip(ends, self._widths, types, strict=True)]

    def _form(self, columns: Sequence[pa.Array]) -> Words | list[Any]:
        """Return the keys in the form that the index takes."""
        if isinstance(self.index, WordIndex):
            words = self._words(columns)
            if words is not None:
                return words
            self._take_any()
        return key_values(columns)

    def _words(self, columns: Sequence[pa.Array]) -> Words | None:
        found: list[list[npt.NDArray[np.uint64]]] = []
        for column, kind in zip(columns, self.types.types, strict=True):
            fitting = pa.nulls(len(column), kind) if pa.types.is_null(column.type) else column
            words = words_of(fitting) if fitting.type == kind else None
            if words is None:
                return None
            found.append(words)
        for place, words in enumerate(found):
            while self._widths[place] < len(words):
                self._widen(place)
        return joined(found, self._widths)

    def _widen(self, place: int) -> None:
        """Make room for another word of the key column at `place`."""
        assert isinstance(self.index, WordIndex)
        self.index.widen(sum(self._widths[: place + 1]))
        self._widths[place] += 1

    def _take_any(self) -> None:
        """Allow keys of any type from now on; existing keys keep their slots."""
        where = self.everything()
        keys, self.index = key_values(self.keys(where)), DictIndex()
        if len(where):
            self.index.add(keys, np.arange(len(where)), where)


def _differ(kind: pa.DataType, other: pa.DataType) -> bool:
    return not pa.types.is_null(kind) and kind != other
