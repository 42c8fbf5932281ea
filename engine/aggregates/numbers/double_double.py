"""Numbers of 106 bits as the sum of two float64, in arrays (Dekker 1971; Knuth, The Art of Computer Programming, vol. 2, 4.2.2).

>>> tenth = DoubleDouble(np.array([0.1]), np.array([0.0]))
>>> float(tenth.times(np.array([10.0])).minus(DoubleDouble(np.array([1.0]), np.array([0.0]))).high[0])
5.551115123125783e-17
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SPLITTER = 2.0**27 + 1


@dataclass(frozen=True, slots=True)
class DoubleDouble:
    """`high + low`, shape (n,) each, where `low` is less than the last digit of `high`."""

    high: Floats
    low: Floats

    @staticmethod
    def zeros(n: int) -> DoubleDouble:
        return DoubleDouble(np.zeros(n), np.zeros(n))

    def add_at(self, places: Ints, values: Ints, exponents: Ints) -> None:
        """Add `values * 2**exponents` in place, at distinct places."""
        whole = values.astype(np.float64)
        rest = (values - np.clip(whole, -(2.0**62), 2.0**62).astype(np.int64)).astype(np.float64)
        for part in (whole, rest):
            high, low = two_sum(self.high[places], np.ldexp(part, exponents))
            self.high[places], self.low[places] = _quick_two_sum(high, low + self.low[places])

    def times(self, factor: Floats) -> DoubleDouble:
        high, low = _two_product(self.high, factor)
        return DoubleDouble(*_quick_two_sum(high, low + self.low * factor))

    def squared(self) -> DoubleDouble:
        high, low = _two_product(self.high, self.high)
        return DoubleDouble(*_quick_two_sum(high, low + 2 * self.high * self.low))

    def minus(self, other: DoubleDouble) -> DoubleDouble:
        high, low = two_sum(self.high, -other.high)
        return DoubleDouble(*_quick_two_sum(high, low + (self.low - other.low)))


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _quick_two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the same as `two_sum` for |a| >= |b|, in fewer operations."""
    total = a + b
    return total, b - (total - a)


def _two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a * b and its rounding error."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Floats) -> tuple[Floats, Floats]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high
