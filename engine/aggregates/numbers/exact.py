"""Exact sums of integers and decimals, as limbs of 32 bits that can't overflow while summing.

A sum of n limbs is `limb[0] + limb[1] * 2**32 + ...`, all limbs in [0, 2**32) but the last, which carries the sign and has 64
bits. So a sum that exceeds int64 in between is right in any order of the values, and a final sum outside int64 is detected.

>>> sums = ExactAddends(pa.int64())
>>> limbs = sums.by_group(pa.array([2**63 - 1, 2**63 - 1, -(2**63)]), np.array([0, 0, 0]), 1)
>>> sums.to_ints(limbs) == [2**63 - 2]
True
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base import Codes, Parts

BITS = 32
MASK = (1 << BITS) - 1
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""The digits after the decimal point of a second, by the unit of a duration."""


class ExactAddends:
    """The arithmetic for one type of integers (also durations, as their integers) or decimals of 128 or 256 bits."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.decimal = pa.types.is_decimal(kind)
        self.limbs = kind.bit_width // BITS if self.decimal else 2
        self.part_types = (pa.int64(),) * self.limbs
        self.scale = kind.scale if self.decimal else 0
        self._digits = _DIGITS[kind.unit] if pa.types.is_duration(kind) else self.scale

    def zero(self, n: int) -> Parts:
        return tuple(np.zeros(n, np.int64) for _ in range(self.limbs))

    def by_group(self, column: pa.Array, codes: Codes, groups: int) -> Parts:
        """Return the sum of each group; `column` has no nulls."""
        if self.decimal:
            return self.by_code(decimal_limbs(column, self.limbs), codes, groups)
        values = (column.view(pa.int64()) if pa.types.is_duration(column.type) else column).to_numpy()
        if len(values) and max(-int(values.min()), int(values.max())) * len(values) >= 2**63:
            high = (values >> values.dtype.type(BITS)).astype(np.int64)
            return self.by_code(((values & values.dtype.type(MASK)).astype(np.int64), high), codes, groups)
        total = np.zeros(groups, np.int64)
        np.add.at(total, codes, values.astype(np.int64, copy=False))
        return total & MASK, total >> BITS

    def by_code(self, limbs: Parts, codes: Codes, groups: int) -> Parts:
        """Return the sums of the rows with equal codes."""
        sums = self.zero(groups)
        for total, limb in zip(sums, limbs, strict=True):
            np.add.at(total, codes, limb)
        return carried(sums)

    def plus(self, left: Parts, right: Parts) -> Parts:
        return carried(tuple(a + b for a, b in zip(left, right, strict=True)))

    def negated(self, limbs: Parts) -> Parts:
        return carried(tuple(-limb for limb in limbs))

    def to_float(self, limbs: Parts) -> npt.NDArray[np.float64]:
        """Return the sums as float64, shape (n,)."""
        value = limbs[-1].astype(np.float64)
        for limb in reversed(limbs[:-1]):
            value = value * 2.0**BITS + limb
        exact_as_float: npt.NDArray[np.float64] = value / 10.0**self.scale
        return exact_as_float

    def to_ints(self, limbs: Parts) -> list[int]:
        """Return the sums as Python integers, for decimals in units of their last digit."""
        return [sum(limb << (BITS * k) for k, limb in enumerate(row)) for row in zip(*(limb.tolist() for limb in limbs), strict=True)]

    def rescaled(self, limbs: Parts, narrower: ExactAddends) -> Parts:
        """Convert sums of a type with no more digits on either side of the point to sums of this type."""
        if (self.limbs, self._digits) == (narrower.limbs, narrower._digits):
            return limbs
        factor = 10 ** (self._digits - narrower._digits)
        sums, last = [value * factor for value in narrower.to_ints(limbs)], self.limbs - 1
        lower = tuple(np.array([(value >> (BITS * k)) & MASK for value in sums], np.int64) for k in range(last))
        return (*lower, np.array([value >> (BITS * last) for value in sums], np.int64))

    def to_arrow(self, limbs: Parts, kind: pa.DataType, seen: npt.NDArray[np.bool_]) -> pa.Array:
        """Return the sums as `kind`, null where not `seen`. Raises OverflowError with the first sum that doesn't fit."""
        top = limbs[-1]
        if ((top < -(2**31)) | (top >= 2**31)).any():
            raise OverflowError(self._first_outside(limbs, kind))
        if not self.decimal:
            return pa.array((top << BITS) | limbs[0], mask=~seen).view(kind)
        words = np.stack([limb.astype(np.uint32) for limb in (*limbs[:-1], top & MASK)], axis=1).astype("<u4")
        validity = pa.py_buffer(np.packbits(seen, bitorder="little"))
        sums = pa.Array.from_buffers(kind, len(top), [validity, pa.py_buffer(words)])
        try:
            sums.validate(full=True)
        except pa.ArrowInvalid:
            raise OverflowError(self._first_outside(limbs, kind)) from None
        return sums

    def _first_outside(self, limbs: Parts, kind: pa.DataType) -> str:
        limit = 10**kind.precision if self.decimal else 2**63
        value = next(value for value in self.to_ints(limbs) if not -limit <= value < limit or (self.decimal and value == -limit))
        return f"{value}e{-self.scale}" if self.scale else str(value)


def carried(limbs: Parts) -> Parts:
    """Return the sums with all limbs but the last in [0, 2**32): one form for one sum, and room for 2**31 additions."""
    carried = list(limbs)
    for k in range(len(limbs) - 1):
        limb: npt.NDArray[np.int64] = carried[k]
        carried[k] = limb & MASK
        carried[k + 1] = carried[k + 1] + (limb >> BITS)
    return tuple(carried)


def decimal_limbs(column: pa.Array, limbs: int) -> Parts:
    """Return the limbs of each value of a decimal column, read from Arrow's little-endian two's complement."""
    if not len(column):
        return tuple(np.zeros(0, np.int64) for _ in range(limbs))
    words = np.frombuffer(column.buffers()[1], "<u4")[column.offset * limbs : (column.offset + len(column)) * limbs].reshape(-1, limbs)
    return (*(words[:, k].astype(np.int64) for k in range(limbs - 1)), words[:, -1].astype(np.int32).astype(np.int64))
