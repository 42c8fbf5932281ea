"""Sums of floats that keep about 106 bits: large values that cancel each other leave the small ones.

A sum is `high + low`, where `high` is the sum as float64 and `low` what is lost by that. The values of a batch are split at one bit
position, so that the upper parts have few digits, whose sums are exact in any order (Rump, Ogita, Oishi, Accurate floating-point
summation, 2008). The sums of the lower parts are rounded, by less than the largest value times n**2 / 2**106 for n values. NaN, or two
infinities of unlike sign, make NaN.

>>> sums = FloatAddends()
>>> high, low = sums.by_group(pa.array([-1e21, -1e21, 1.0, 1.0, 1e21, 1e21]), np.zeros(6, np.int64), 1)
>>> high.tolist()
[2.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base import Codes, Parts

Floats = npt.NDArray[np.float64]

_LARGEST = 1_000
"""The greatest exponent of values that are split: the constant must not overflow."""

_BLOCK = 8_192
"""Values that are split at a time, few enough for the processor's cache: arrays of a whole batch cost twice as much."""


class FloatAddends:
    """Parts: (the sum, its rounding error)."""

    part_types = (pa.float64(), pa.float64())

    def zero(self, n: int) -> Parts:
        return np.zeros(n), np.zeros(n)

    def by_group(self, column: pa.Array, codes: Codes, groups: int) -> Parts:
        return _grouped(column.to_numpy().astype(np.float64, copy=False), codes, groups)

    def by_code(self, limbs: Parts, codes: Codes, groups: int) -> Parts:
        high, low = (_grouped(limb, codes, groups) for limb in limbs)
        return self.plus(high, low)

    def plus(self, left: Parts, right: Parts) -> Parts:
        with np.errstate(invalid="ignore", over="ignore"):
            high, error = _two_sum(left[0], right[0])
            return _normal(high, error + (left[1] + right[1]))

    def to_float(self, limbs: Parts) -> Floats:
        total: Floats = limbs[0]
        return total

    def to_arrow(self, limbs: Parts, kind: pa.DataType, seen: npt.NDArray[np.bool_]) -> pa.Array:
        return pa.array(limbs[0], kind, mask=~seen)

    @staticmethod
    def of_integers(sums: list[int]) -> Parts:
        """Convert sums of integers to sums of floats, with as many digits as two floats hold."""
        high = np.array(sums, np.float64)
        return high, np.array([total - int(of) for total, of in zip(sums, high.tolist(), strict=True)], np.float64)


def _grouped(values: Floats, codes: Codes, groups: int) -> tuple[Any, Any]:
    """The sum of each group, and its error."""
    if not len(values):
        return np.zeros(groups), np.zeros(groups)
    largest = max(float(values.max()), -float(values.min()))
    exponent = int(np.frexp(largest)[1]) + len(values).bit_length()
    if not np.isfinite(largest) or exponent > _LARGEST:
        return _added(values, codes, groups), np.zeros(groups)
    constant = np.ldexp(1.5, exponent)
    high, low = np.zeros(groups), np.zeros(groups)
    upper, rest = np.empty(min(len(values), _BLOCK)), np.empty(min(len(values), _BLOCK))
    for start in range(0, len(values), _BLOCK):
        some, some_codes = values[start : start + _BLOCK], codes[start : start + _BLOCK]
        above, below = upper[: len(some)], rest[: len(some)]
        np.add(some, constant, out=above)
        np.subtract(above, constant, out=above)
        np.subtract(some, above, out=below)
        np.add.at(high, some_codes, above)
        np.add.at(low, some_codes, below)
    return _normal(*_two_sum(high, low))


def _added(values: Floats, codes: Codes, groups: int) -> Floats:
    total = np.zeros(groups)
    with np.errstate(invalid="ignore", over="ignore"):
        np.add.at(total, codes, values)
    return total


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b, and its rounding error (Knuth, The Art of Computer Programming, vol. 2, 4.2.2)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _normal(high: Floats, error: Floats) -> tuple[Floats, Floats]:
    """The same sums, `high` rounded to nearest; one that is not finite has no error."""
    total = high + error
    low = error - (total - high)
    finite = np.isfinite(high)
    return (total, low) if finite.all() else (np.where(finite, total, high), np.where(finite, low, 0.0))
