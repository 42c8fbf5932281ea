"""Partial aggregates of rows with weights: the rows with weight -1 are taken back from those with weight 1.

`rows` counts the rows that arrived, as for any other input, so that the load of a key is what it costs; the number of rows that are
left in a group is an aggregate of its own, the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..weights import weights_of, without_weights
from .base import Parts
from .partial_aggregates import PartialAggregates, PartialAggregator
from .ragged import Ragged


class WeighedAggregator(PartialAggregator):
    """Aggregates that can take rows back: their functions are all `weighed`, and the first is `count`."""

    def aggregate(self, batch: Batch, codes: npt.NDArray[Any], keys: Sequence[pa.Array], groups: int) -> PartialAggregates:
        added = weights_of(batch.rows, self.operator) > 0
        batch = batch.with_rows(without_weights(batch.rows))
        if added.all():
            return super().aggregate(batch, codes, keys, groups)
        plus = super().aggregate(batch.filter(added), codes[added], keys, groups)
        minus = super().aggregate(batch.filter(~added), codes[~added], keys, groups)
        pairs = zip(self.accumulators, plus.parts, minus.parts, strict=True)
        parts = tuple(a.merge(left, a.negated(right)) for a, left, right in pairs)
        return PartialAggregates(tuple(keys), plus.rows + minus.rows, parts)

    def are_gone(self, partial: PartialAggregates) -> npt.NDArray[np.bool_]:
        """Return a mask of the groups whose state is that of no rows, shape (n,).

        A group with as many rows taken back as added may still miss some: its other aggregates tell.
        """
        gone: npt.NDArray[np.bool_] = partial.parts[0][0] == 0
        if gone.any():
            for accumulator, parts in zip(self.accumulators[1:], partial.parts[1:], strict=True):
                for part, nothing in zip(parts, accumulator.empty(1), strict=True):
                    gone &= part.counts == 0 if isinstance(part, Ragged) else part == nothing[0]
        return gone

    def of_nothing(self, keys: Sequence[pa.Array]) -> PartialAggregates:
        """Return the state of groups without rows."""
        n = len(keys[0])
        parts: tuple[Parts, ...] = tuple(accumulator.empty(n) for accumulator in self.accumulators)
        return PartialAggregates(tuple(keys), np.zeros(n, np.int64), parts)
