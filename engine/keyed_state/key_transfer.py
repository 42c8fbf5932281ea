"""A transfer of state that stays with its owner until it is sent, some keys at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from ..batch import Batch
from .base import StateTransfer


class KeyTransfer(StateTransfer):
    """A transfer of the keys in the key columns `columns`. `take` removes and returns the state of keys that are still there.

    >>> transfer = KeyTransfer([pa.array([1, 2, 3])], lambda keys: Batch(pa.record_batch({"key": keys[0]})))
    >>> transfer.next_chunk(2).to_rows(), transfer.next_chunk(2).to_rows(), transfer.next_chunk(2)
    ([{'key': 2}, {'key': 3}], [{'key': 1}], None)
    """

    def __init__(self, columns: Sequence[pa.Array], take: Callable[[Sequence[pa.Array]], Batch | None]) -> None:
        self._columns, self._take = columns, take
        self._left = len(columns[0]) if columns else 0

    def next_chunk(self, keys: int) -> Batch | None:
        while self._left:
            before, self._left = self._left, max(0, self._left - keys)
            batch = self._take([column.slice(self._left, before - self._left) for column in self._columns])
            if batch is not None:
                return batch
        return None

    def fetch(self, columns: Sequence[pa.Array]) -> Sequence[Batch]:
        batch = self._take(columns)
        return () if batch is None else (batch,)
