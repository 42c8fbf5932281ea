"""The accumulator for a column that has held only nulls, and has no type yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import Batch
from .base import Accumulator, Codes, Parts


class UntypedAccumulator(Accumulator):
    """An accumulator of nulls, whose every result is `result`, of the type `output_type`.

    Parts: (nothing,), a false for each group; on the wire a column of nulls.
    """

    part_types = (pa.null(),)
    typed = False
    fixed_width = True

    def __init__(self, operator: str, output_type: pa.DataType | None = None, result: Any = None) -> None:
        self.operator, self.output_type, self.result = operator, pa.null() if output_type is None else output_type, result

    def empty(self, n: int) -> Parts:
        return (np.zeros(n, np.bool_),)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        return self.empty(groups)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        return self.empty(groups)

    def merge(self, left: Parts, right: Parts) -> Parts:
        return left

    def negated(self, parts: Parts) -> Parts:
        return parts

    def finish(self, parts: Parts) -> pa.Array:
        return pa.array([self.result] * len(parts[0]), self.output_type)

    def to_arrow(self, parts: Parts) -> list[pa.Array]:
        return [pa.nulls(len(parts[0]))]

    def from_arrow(self, arrays: Sequence[pa.Array]) -> Parts:
        self.check_types(arrays)
        return self.empty(len(arrays[0]))
