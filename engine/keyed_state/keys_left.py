"""The keys that a transfer has still to send."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


class KeysLeft:
    """`columns`: the key columns.

    >>> left = KeysLeft([pa.array([1, 2, 3])])
    >>> [left.take(2)[0].to_pylist(), left.take(2)[0].to_pylist()], bool(left)
    ([[2, 3], [1]], False)
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._columns = columns
        self._count = len(columns[0]) if columns else 0

    def __bool__(self) -> bool:
        return self._count > 0

    def take(self, most: int) -> list[pa.Array]:
        """Take `most` of the keys, or all that are left, from the end."""
        before, self._count = self._count, max(0, self._count - most)
        return [column.slice(self._count, before - self._count) for column in self._columns]
