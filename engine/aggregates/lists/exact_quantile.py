"""Exact quantiles: a group keeps all its values, eight bytes each.

Between two values it interpolates linearly, as DuckDB's `quantile_cont` and numpy's default do: of n sorted values x the result
is x[floor(r)] + (x[ceil(r)] - x[floor(r)]) * (r - floor(r)) with r = q * (n - 1). So the median of an even number is the mean of
the two middle values.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ..base import Accumulator, AggregateFunction, Codes, Parts, call
from ..column import InputColumn
from ..kept_values import AllValuesAccumulator, sorted_in_groups
from ..multiset import Multiset
from ..ragged import Ragged
from ..untyped import UntypedAccumulator

_LONG = 128
"""The mean length of lists from which on each is sorted alone, which costs a call per group and less per value."""


@dataclass(frozen=True, slots=True)
class Quantile(AggregateFunction):
    """The aggregate of the `q`-quantile of a column, float64. As in min and max, NaN is larger than any number."""

    column: str
    q: float
    name: str = "quantile"
    """The name of the user's function, for errors."""

    def describe(self) -> str:
        return call("median", self.column) if self.name == "median" else call("quantile", self.column, self.q)

    def weighed(self) -> AggregateFunction:
        return Multiset(self)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, self.name, self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator, pa.float64())
        if not (pa.types.is_integer(source.type) or pa.types.is_floating(source.type) or pa.types.is_decimal(source.type)):
            raise source.refusal("integers, floats and decimals")
        return ExactQuantileAccumulator(source, self.q)


class ExactQuantileAccumulator(AllValuesAccumulator):
    """An accumulator whose lists hold all values as float64."""

    def __init__(self, source: InputColumn, q: float) -> None:
        super().__init__(source.operator, pa.float64(), pa.float64())
        self.source, self.q = source, q

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        values = rows.values.cast(pa.float64(), safe=False).to_numpy() + 0.0  # makes -0.0 the 0.0 that it equals
        return (self.reduced(pa.array(values), rows.codes, groups),)

    def finish(self, parts: Parts) -> pa.Array:
        lists: Ragged = parts[0]
        ordered, counts = _sorted(lists), lists.counts
        seen = counts > 0
        rank = self.q * (counts[seen] - 1)
        starts = lists.offsets[:-1][seen]
        low, high = (ordered[starts + bound.astype(np.int64)] for bound in (np.floor(rank), np.ceil(rank)))
        results = np.zeros(len(lists))
        with np.errstate(invalid="ignore", over="ignore"):
            results[seen] = _between(low, high, rank - np.floor(rank))
        return pa.array(results, mask=~seen)


def _between(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], part: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the value at `part` of the way from `low` to `high`.

    If their distance overflows float64, it is computed as the weighted mean.
    """
    distance = high - low
    between = np.where(np.isfinite(distance), low + distance * part, low * (1 - part) + high * part)
    return np.where(low == high, low, between)


def _sorted(lists: Ragged) -> npt.NDArray[np.float64]:
    """Return the values end to end, each list sorted."""
    values: npt.NDArray[np.float64] = lists.values.to_numpy()
    if len(values) < _LONG * len(lists):
        return values[sorted_in_groups(values, lists.codes(np.arange(len(lists))), len(lists))]
    values, ends = values.copy(), lists.offsets.tolist()
    for start, end in pairwise(ends):
        values[start:end].sort()
    return values
