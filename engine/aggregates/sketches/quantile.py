"""A quantile within a relative error: DDSketch, with buckets that are never collapsed.

Bucket i counts the values whose logarithm falls into the i-th interval of a width that keeps its middle within the relative error
of all of them. Every result is at most `relative_error` away from the value x[floor(q * (n - 1))] of the sorted values, for
values of magnitude 2.3e-308 and more. A group has a bucket per interval that occurs: 115 per decade of magnitude at 1 %.

Sources: Masson, Rim, Lee, DDSketch, VLDB 2019 (proposition 3 for the error); the logarithm is approximated by the cubic of their
implementation (7/10 ln 2 = 1 % more buckets), of additions and multiplications only, which give the same bits on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ..base import Accumulator, AggregateFunction, Array, Codes, Parts, call
from ..column import InputColumn
from ..untyped import UntypedAccumulator
from .sketch import SketchAccumulator, cut, entries_of, first_of_runs

Floats = npt.NDArray[np.float64]

_ENTRY = np.dtype([("bucket", "<i4"), ("count", "<i8")])
_BIAS = 1 << 31
_INFINITE, _NAN = _BIAS - 2, _BIAS - 1
_LEAST = 5e-324
_A, _B, _C = 6 / 35, -3 / 5, 10 / 7


@dataclass(frozen=True, slots=True)
class ApproxQuantile(AggregateFunction):
    """The aggregate of the approximate `q`-quantile, float64. As in min and max, NaN is larger than any number."""

    column: str
    q: float
    relative_error: float

    def describe(self) -> str:
        return call("approx_quantile", self.column, self.q, relative_error=self.relative_error)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "approx_quantile", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator, pa.float64())
        if not (pa.types.is_integer(source.type) or pa.types.is_floating(source.type) or pa.types.is_decimal(source.type)):
            raise source.refusal("integers, floats and decimals")
        return QuantileAccumulator(source, self.q, Buckets(self.relative_error))


class Buckets:
    """The numbering of buckets: 0 for zero, rising from 1 on for positive values, the same below 0 for negative ones."""

    def __init__(self, relative_error: float) -> None:
        self.per_octave = 1 / (_C * math.log((1 + relative_error) / (1 - relative_error)))
        self.offset = 1 - int(self._interval(np.array([_LEAST]))[0])

    def of(self, values: Floats) -> npt.NDArray[np.int64]:
        """Return the bucket of each value, shape (rows,)."""
        magnitude = np.abs(values)
        ordinary = (magnitude > 0) & (magnitude < np.inf)
        interval = self._interval(np.where(ordinary, magnitude, 1.0)) + self.offset
        bucket = np.where(ordinary, interval, np.where(magnitude == 0, 0, _INFINITE))
        return np.where(np.isnan(values), _NAN, np.where(values < 0, -bucket, bucket))

    def middle(self, buckets: npt.NDArray[np.int64]) -> Floats:
        """Return the value that represents each bucket: 2 L U / (L + U) of its bounds."""
        interval = np.abs(buckets) - self.offset
        ordinary = (buckets != 0) & (np.abs(buckets) < _INFINITE)
        interval = np.where(ordinary, interval, 0)
        low, low_octave = self._bound(interval - 1)
        high, high_octave = self._bound(interval)
        ratio = np.ldexp(high / low, high_octave - low_octave)
        with np.errstate(over="ignore", under="ignore"):
            middle = np.ldexp(low * 2 * ratio / (1 + ratio), low_octave)
        middle = np.clip(middle, _LEAST, np.finfo(np.float64).max)
        middle = np.where(ordinary, middle, np.where(buckets == 0, 0.0, np.inf))
        return np.where(buckets == _NAN, np.nan, np.where(buckets < 0, -middle, middle))

    def _interval(self, magnitude: Floats) -> npt.NDArray[np.int64]:
        mantissa, exponent = np.frexp(magnitude)
        s = mantissa * 2 - 1
        log2 = (exponent - 1) + ((_A * s + _B) * s + _C) * s
        interval: npt.NDArray[np.int64] = np.ceil(log2 * self.per_octave).astype(np.int64)
        return interval

    def _bound(self, interval: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int32]]:
        """Return the upper bound of an interval as a factor in [1, 2) and a power of two."""
        log2 = interval / self.per_octave
        octave = np.floor(log2)
        target = log2 - octave
        s = target
        for _ in range(6):  # Newton's method; the cubic is monotone with slopes from 0.7 to 1.5
            s = s - (((_A * s + _B) * s + _C) * s - target) / ((3 * _A * s + 2 * _B) * s + _C)
        return 1 + s, octave.astype(np.int32)


class QuantileAccumulator(SketchAccumulator):
    """An accumulator whose sketch is the non-empty buckets, rising, each with its number of values: 12 bytes each."""

    def __init__(self, source: InputColumn, q: float, buckets: Buckets) -> None:
        super().__init__(source, pa.float64())
        self.q, self.buckets = q, buckets

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        values = rows.values.cast(pa.float64(), safe=False).to_numpy()
        pairs = np.sort(_pairs(rows.codes, self.buckets.of(values)))
        starts = np.flatnonzero(first_of_runs(pairs))
        return (_sketches(pairs[starts], np.diff(starts, append=len(pairs)), groups),)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        row_codes, entries = entries_of(parts[0], codes, _ENTRY)
        pairs = _pairs(row_codes, entries["bucket"].astype(np.int64))
        order = np.argsort(pairs)
        pairs = pairs[order]
        starts = np.flatnonzero(first_of_runs(pairs))
        counts = np.add.reduceat(entries["count"][order], starts) if len(starts) else np.zeros(0, np.int64)
        return (_sketches(pairs[starts], counts, groups),)

    def finish(self, parts: Parts) -> pa.Array:
        groups = len(parts[0])
        codes, entries = entries_of(parts[0], np.arange(groups), _ENTRY)
        upto = np.cumsum(entries["count"])
        last = np.cumsum(np.bincount(codes, minlength=groups)) - 1
        totals = np.diff(np.where(last >= 0, upto[last], 0), prepend=0) if len(upto) else np.zeros(groups, np.int64)
        before = np.cumsum(totals) - totals
        seen = totals > 0
        rank = before + np.floor(self.q * (totals - 1)).astype(np.int64)
        at = np.searchsorted(upto, rank[seen], side="right")
        results = np.zeros(groups)
        results[seen] = self.buckets.middle(entries["bucket"][at].astype(np.int64))
        return pa.array(results, mask=~seen)

    def malformed(self, sketch: bytes) -> bool:
        return len(sketch) % _ENTRY.itemsize != 0


def _pairs(codes: Codes, buckets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return code and bucket as one integer in the order of the pair."""
    return (codes.astype(np.uint64) << np.uint64(32)) | (buckets + _BIAS).astype(np.uint64)


def _sketches(pairs: npt.NDArray[np.uint64], counts: npt.NDArray[np.int64], groups: int) -> Array:
    entries = np.empty(len(pairs), _ENTRY)
    entries["bucket"] = (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64) - _BIAS
    entries["count"] = counts
    return cut(entries, np.bincount((pairs >> np.uint64(32)).astype(np.int64), minlength=groups))
