"""Sums of floats that keep about 106 bits: large values that cancel each other leave the small ones.

A sum is `high + low`, where `high` is nearly the sum as float64 and `low` what it lacks. The values of a batch are split at one bit
position, so that the upper parts have few digits, whose sums are exact in any order (Rump, Ogita, Oishi, Accurate floating-point
summation, 2008). The lower parts, of n values each at most n / 2**51 of the largest value, are summed as usual, with rounding. Values that
end before that bit, such as integers or eighths, have none. NaN, or two infinities of unlike sign, make NaN.

>>> sums = FloatAddends()
>>> parts = sums.by_group(pa.array([-1e21, -1e21, 1.0, 1.0, 1e21, 1e21]), np.zeros(6, np.int64), 1)
>>> sums.to_float(parts).tolist()
[2.0]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base import Codes, Parts
from .double_double import two_sum

Floats = npt.NDArray[np.float64]

_LARGEST = 1_000
"""The greatest exponent of values that are split: the constant must not overflow."""

_BLOCK = 16_384
"""Values that are split at a time, few enough for the processor's cache: arrays of a whole batch cost twice as much."""


class FloatAddends:
    """Parts: (the sum, its rounding error, which may be more than half of the sum's last digit)."""

    part_types = (pa.float64(), pa.float64())

    def zero(self, n: int) -> Parts:
        return np.zeros(n), np.zeros(n)

    def by_group(self, column: pa.Array, codes: Codes, groups: int) -> Parts:
        return _grouped(column.to_numpy().astype(np.float64, copy=False), codes, groups)

    def by_code(self, limbs: Parts, codes: Codes, groups: int) -> Parts:
        high, low = _grouped(limbs[0], codes, groups)
        return high, low + _added(limbs[1], codes, groups) if limbs[1].any() else low

    def plus(self, left: Parts, right: Parts) -> Parts:
        with np.errstate(invalid="ignore", over="ignore"):
            high, error = two_sum(left[0], right[0])
            return _normal(high, error + (left[1] + right[1]))

    def to_float(self, limbs: Parts) -> Floats:
        with np.errstate(over="ignore"):
            total: Floats = limbs[0] + limbs[1]
        return total

    def to_arrow(self, limbs: Parts, kind: pa.DataType, seen: npt.NDArray[np.bool_]) -> pa.Array:
        return pa.array(self.to_float(limbs), kind, mask=~seen)

    @staticmethod
    def of_integers(sums: list[int]) -> Parts:
        """Convert sums of integers to sums of floats, with as many digits as two floats hold."""
        high = np.array(sums, np.float64)
        return high, np.array([total - int(of) for total, of in zip(sums, high.tolist(), strict=True)], np.float64)


def _grouped(values: Floats, codes: Codes, groups: int) -> Parts:
    """Return the sum of each group, and its error."""
    if not len(values):
        return np.zeros(groups), _none(groups)
    largest = max(float(values.max()), -float(values.min()))
    if not np.isfinite(largest):
        return _beside_infinite(values, codes, groups)
    exponent = int(np.frexp(largest)[1]) + len(values).bit_length()
    if exponent > _LARGEST:
        return _added(values, codes, groups), _none(groups)
    constant = np.ldexp(1.5, exponent)
    if _are_short(values, constant):
        return _added(values, codes, groups), _none(groups)
    return _split(values, constant, codes, groups)


def _beside_infinite(values: Floats, codes: Codes, groups: int) -> Parts:
    """Return the sums as `_grouped` does, where some values are infinite or NaN: they change the sums of their own groups only."""
    finite = np.isfinite(values)
    high, low = _grouped(np.where(finite, values, 0.0), codes, groups)
    with np.errstate(invalid="ignore"):
        return high + _added(values[~finite], codes[~finite], groups), low


def _are_short(values: Floats, constant: np.float64) -> bool:
    """True if all values end before the bit at which `constant` splits them, so that their sums are exact."""
    upper, same = np.empty(min(len(values), _BLOCK)), np.empty(min(len(values), _BLOCK), np.bool_)
    for start in range(0, len(values), _BLOCK):
        some = values[start : start + _BLOCK]
        above = np.add(some, constant, out=upper[: len(some)])
        np.subtract(above, constant, out=above)
        if not np.equal(some, above, out=same[: len(some)]).all():
            return False
    return True


def _split(values: Floats, constant: np.float64, codes: Codes, groups: int) -> Parts:
    """Sum the upper and lower parts as complex numbers, so that both are added in one pass."""
    sums = np.zeros(groups, np.complex128)
    upper, parts = np.empty(min(len(values), _BLOCK)), np.empty(min(len(values), _BLOCK), np.complex128)
    for start in range(0, len(values), _BLOCK):
        some = values[start : start + _BLOCK]
        above, both = np.add(some, constant, out=upper[: len(some)]), parts[: len(some)]
        np.subtract(above, constant, out=above)
        both.real = above
        np.subtract(some, above, out=both.imag)
        np.add.at(sums, codes[start : start + _BLOCK], both)
    return sums.real, sums.imag


def _none(groups: int) -> Floats:
    """Return errors of zero, in an array that takes no memory."""
    return np.broadcast_to(np.float64(0.0), groups)


def _added(values: Floats, codes: Codes, groups: int) -> Floats:
    total = np.zeros(groups)
    with np.errstate(invalid="ignore", over="ignore"):
        np.add.at(total, codes, values)
    return total


def _normal(high: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Return the same sums with `high` rounded to nearest; a sum that is not finite gets an error of zero."""
    total, low = two_sum(high, error)
    finite = np.isfinite(high)
    return (total, low) if finite.all() else (np.where(finite, total, high), np.where(finite, low, 0.0))
