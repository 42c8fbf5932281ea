"""The variance of integers and decimals, from their exact sum and the exact sum of their squares.

Both sums are limbs of 32 bits, as in `exact.py`: no value is rounded, and the state doesn't depend on the order of values. A
group keeps 56 bytes for integers, 104 for decimals of 128 bits. The result is computed in double-double arithmetic, and with
integers of any length for groups whose values hardly differ.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ..base import Accumulator, Codes, Parts
from ..column import InputColumn
from .double_double import DoubleDouble
from .exact import BITS, MASK, ExactAddends, carried, decimal_limbs

Limbs = tuple[npt.NDArray[Any], ...]

NEARLY_EQUAL = 2.0**-50
"""The variance over the mean square below which double-double arithmetic is not trusted."""


class ExactVarianceAccumulator(Accumulator):
    """An accumulator of exact sums. Parts: (number of values, the limbs of their sum ..., of the sum of their squares ...)."""

    fixed_width = True

    def __init__(self, source: InputColumn, root: bool) -> None:
        self.source, self.root, self.operator, self.output_type = source, root, source.operator, pa.float64()
        self.addends = ExactAddends(source.read_type)
        self._squares = 2 * self.addends.limbs
        self.part_types = (pa.int64(),) * (1 + self.addends.limbs + self._squares)

    def empty(self, n: int) -> Parts:
        return tuple(np.zeros(n, np.int64) for _ in self.part_types)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        sums = self.addends.by_group(rows.values, rows.codes, groups)
        squares = _by_code(_squared(self._magnitudes(rows.values)), rows.codes, groups)
        return (np.bincount(rows.codes, minlength=groups), *sums, *squares)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        count, sums, squares = self._of(parts)
        counts = np.zeros(groups, np.int64)
        np.add.at(counts, codes, count)
        return (counts, *_by_code(sums, codes, groups), *_by_code(squares, codes, groups))

    def merge(self, left: Parts, right: Parts) -> Parts:
        count, sums, squares = self._of(tuple(a + b for a, b in zip(left, right, strict=True)))
        return (count, *carried(sums), *carried(squares))

    def negated(self, parts: Parts) -> Parts:
        count, sums, squares = self._of(tuple(-part for part in parts))
        return (count, *carried(sums), *carried(squares))

    def finish(self, parts: Parts) -> pa.Array:
        n, sums, squares = self._of(parts)
        defined, count = n > 1, np.maximum(n, 2).astype(np.float64)
        total, square = _double(_magnitude(sums)), _double(squares)
        spread = square.times(count).minus(total.squared())
        variances = spread.high / count / (count - 1) / 10.0 ** (2 * self.addends.scale)
        for place in np.flatnonzero(defined & (spread.high < NEARLY_EQUAL * square.high * count)).tolist():
            variances[place] = self._exactly(*(tuple(limb[place : place + 1] for limb in limbs) for limbs in ((n,), sums, squares)))
        return pa.array(np.sqrt(variances) if self.root else variances, mask=~defined)

    def carried(self, parts: Parts, narrower: Self) -> Parts:
        if self.part_types == narrower.part_types and self.addends.scale == narrower.addends.scale:
            return parts
        factor = 10 ** (self.addends.scale - narrower.addends.scale)
        count, sums, squares = self.integers(parts, narrower)
        wide = [total * factor for total in sums], [square * factor**2 for square in squares]
        return (count, *limbs_of(wide[0], self.addends.limbs), *limbs_of(wide[1], self._squares))

    @staticmethod
    def integers(parts: Parts, of: ExactVarianceAccumulator) -> tuple[npt.NDArray[np.int64], list[int], list[int]]:
        """Return the counts, the sums and the sums of squares of the parts of an accumulator."""
        count, sums, squares = of._of(parts)
        return count, integers_of(sums), integers_of(squares)

    def _of(self, parts: Parts) -> tuple[npt.NDArray[np.int64], Limbs, Limbs]:
        return parts[0], parts[1 : 1 + self.addends.limbs], parts[1 + self.addends.limbs :]

    def _magnitudes(self, values: pa.Array) -> Limbs:
        if self.addends.decimal:
            return _magnitude(decimal_limbs(values, self.addends.limbs))
        integers = values.to_numpy()
        if integers.dtype != np.uint64:
            integers = np.abs(integers.astype(np.int64, copy=False)).view(np.uint64)  # that of -2**63 has the right bits
        return integers & np.uint64(MASK), integers >> np.uint64(BITS)

    def _exactly(self, n: Limbs, sums: Limbs, squares: Limbs) -> float:
        count, total, square = int(n[0][0]), integers_of(sums)[0], integers_of(squares)[0]
        denominator: int = count * (count - 1) * 10 ** (2 * self.addends.scale)
        return (count * square - total * total) / denominator


def integers_of(limbs: Limbs) -> list[int]:
    """Return sums as Python integers."""
    return [sum(limb << (BITS * k) for k, limb in enumerate(row)) for row in zip(*(limb.tolist() for limb in limbs), strict=True)]


def limbs_of(sums: list[int], count: int) -> Limbs:
    """Return Python integers as limbs; the inverse of `integers_of`."""
    lower = (np.array([(value >> (BITS * k)) & MASK for value in sums], np.int64) for k in range(count - 1))
    return (*lower, np.array([value >> (BITS * (count - 1)) for value in sums], np.int64))


def _by_code(limbs: Limbs, codes: Codes, groups: int) -> Limbs:
    sums = tuple(np.zeros(groups, np.int64) for _ in limbs)
    for total, limb in zip(sums, limbs, strict=True):
        if limb.any():
            np.add.at(total, codes, limb)
    return carried(sums)


def _squared(limbs: Limbs) -> Limbs:
    """Return the squares of magnitudes, with limbs of up to 39 bits."""
    squares = [np.zeros(len(limbs[0]), np.int64) for _ in range(2 * len(limbs))]
    wide = [limb.astype(np.uint64, copy=False) for limb in limbs]
    there = [place for place, limb in enumerate(wide) if limb.any()]
    for at, i in enumerate(there):
        for j in there[at:]:
            product, times = wide[i] * wide[j], 1 + (i < j)
            squares[i + j] += times * (product & np.uint64(MASK)).view(np.int64)
            squares[i + j + 1] += times * (product >> np.uint64(BITS)).view(np.int64)
    return tuple(squares)


def _magnitude(limbs: Limbs) -> Limbs:
    """Return the absolute values of numbers in two's complement."""
    negative = limbs[-1] < 0
    if not negative.any():
        return limbs
    lower = [np.where(negative, MASK - limb, limb) for limb in limbs[:-1]]
    lower[0] = lower[0] + negative
    return carried((*lower, np.where(negative, ~limbs[-1], limbs[-1])))


def _double(limbs: Limbs) -> DoubleDouble:
    """Return non-negative numbers, rounded to 106 bits."""
    total, places = DoubleDouble.zeros(len(limbs[0])), np.arange(len(limbs[0]))
    for k, limb in reversed(list(enumerate(limbs))):
        total.add_at(places, limb, np.full(len(limb), BITS * k))
    return total
