"""The types of the key columns of two inputs: equal keys must have equal hashes, so types that are never equal are an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from ..errors import RecordError
from ..keys.encoding import comparable
from .sides import LEFT, RIGHT, Side


class KeyKinds:
    """`left_keys`, `right_keys`: the key columns of both sides, in pairs; `operator`: whose they are, for errors."""

    def __init__(self, operator: str, left_keys: tuple[str, ...], right_keys: tuple[str, ...]) -> None:
        self._operator = operator
        self._names = tuple(zip(left_keys, right_keys, strict=True))
        self._kinds: dict[Side, list[pa.DataType]] = {}

    def learn(self, side: Side, kinds: Sequence[pa.DataType]) -> None:
        """Note the types of a side's key columns. Raises RecordError, naming both columns, if they can't equal those of the other side."""
        if self._kinds.get(side) == kinds:
            return
        self._kinds[side] = list(kinds)
        if len(self._kinds) < 2:
            return
        problem = never_equal(self._names, self._kinds[LEFT], self._kinds[RIGHT])
        if problem is not None:
            raise RecordError(self._operator, problem)


def never_equal(names: Iterable[tuple[str, str]], left: Iterable[pa.DataType | None], right: Iterable[pa.DataType | None]) -> str | None:
    """The problem of the first pair of key columns whose types are never equal, None if there is none. A type may be unknown (None).

    >>> never_equal([("k", "id")], [pa.int64()], [None])
    """
    for (mine, theirs), kind, other in zip(names, left, right, strict=True):
        if kind is not None and other is not None and not comparable(kind, other):
            problem = f"left's key column `{mine}` is {kind} and right's `{theirs}` is {other}, which are never equal"
            return f"{problem}: convert one of them, for example with map_batches or schema="
    return None
