"""The types of the key columns of two inputs: equal keys must have equal hashes, so types that are never equal are an error."""

from __future__ import annotations

from collections.abc import Sequence

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
        for (left, right), kind, other in zip(self._names, self._kinds[LEFT], self._kinds[RIGHT], strict=True):
            if not comparable(kind, other):
                problem = f"left's key column `{left}` is {kind} and right's `{right}` is {other}, which are never equal"
                raise RecordError(self._operator, f"{problem}: convert one of them, for example with map_batches or schema=")
