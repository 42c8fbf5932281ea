"""The sample variance and the standard deviation, from exact sums; those of integers and decimals are in `exact_variance.py`.

A float64 is an integer M of 53 bits times a power of two. For each exponent in a group, its sums of M and of M**2 are kept as
integers that can't overflow. So the state and the result don't depend on the order of values, and nothing is lost when the
values are far from zero and close to each other. A group keeps 74 bytes for each exponent: prices from 1 to 1,000 have ten.

The result is computed from the sums in double-double arithmetic (Dekker, A floating-point technique for extending the available
precision, 1971), and with integers of any length for groups whose values hardly differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ...keys.encoding import compact
from ..base import Accumulator, AggregateFunction, Codes, Parts, call
from ..column import InputColumn
from ..kept_values import Ints, ListAccumulator
from ..ragged import Ragged
from ..untyped import UntypedAccumulator
from .double_double import DoubleDouble
from .exact_variance import NEARLY_EQUAL, ExactVarianceAccumulator

_HALF = 27
"""The split of M = a * 2**27 + b, so that the products of a and b fit into 64 bits."""
_BITS = 32
_MASK = (1 << _BITS) - 1
_NOT_FINITE = 2_000
"""The exponent of NaN and of infinities."""
_LEAST, _EXPONENTS = -1_100, 3_200
_SUMS = ("n", "a", "b", "aa_low", "aa_high", "ab_low", "ab_high", "bb_low", "bb_high")
_ENTRY = pa.struct([("exponent", pa.int16()), *((name, pa.int64()) for name in _SUMS)])


@dataclass(frozen=True, slots=True)
class Variance(AggregateFunction):
    """The aggregate of a column's sample variance or its root; null for fewer than two values, NaN with a value that is not
    finite.
    """

    column: str
    root: bool

    def describe(self) -> str:
        return call("stddev" if self.root else "variance", self.column)

    def weighed(self) -> AggregateFunction:
        return self

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "stddev" if self.root else "variance", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator, pa.float64())
        if not (pa.types.is_integer(source.type) or pa.types.is_floating(source.type) or pa.types.is_decimal(source.type)):
            raise source.refusal("integers, floats and decimals")
        if not pa.types.is_floating(source.type):
            return ExactVarianceAccumulator(source, self.root)
        return VarianceAccumulator(source, self.root)


class VarianceAccumulator(ListAccumulator):
    """An accumulator whose lists hold the sums of each exponent once."""

    def __init__(self, source: InputColumn, root: bool) -> None:
        super().__init__(source.operator, _ENTRY, pa.float64())
        self.source, self.root = source, root

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        values = rows.values.cast(pa.float64(), safe=False).to_numpy()
        finite = np.isfinite(values)
        mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
        exponent[~finite] = _NOT_FINITE
        integers = np.ldexp(mantissa, 53).astype(np.int64)
        a, b = integers >> _HALF, integers & ((1 << _HALF) - 1)
        products = (a * a, a * b, b * b)
        sums = [np.ones(len(values), np.int64), a, b, *(half for p in products for half in (p & _MASK, p >> _BITS))]
        return (_by_exponent(exponent.astype(np.int64), sums, rows.codes, groups),)

    def reduced(self, values: pa.Array, codes: Codes, groups: int) -> Ragged:
        sums = [values.field(name).to_numpy() for name in _SUMS]
        return _by_exponent(values.field("exponent").to_numpy().astype(np.int64), sums, codes, groups)

    def negated(self, parts: Parts) -> Parts:
        lists: Ragged = parts[0]
        fields = [lists.values.field("exponent"), *(pa.array(-lists.values.field(name).to_numpy()) for name in _SUMS)]
        return (Ragged(pa.StructArray.from_arrays(fields, fields=list(_ENTRY)), lists.offsets),)

    def carried(self, parts: Parts, narrower: Accumulator) -> Parts:
        return (_entries(*narrower.integers(parts, narrower)),) if isinstance(narrower, ExactVarianceAccumulator) else parts

    def finish(self, parts: Parts) -> pa.Array:
        variances, defined = _variances(parts[0])
        return pa.array(np.sqrt(variances) if self.root else variances, mask=~defined)


def _by_exponent(exponents: Ints, sums: list[Ints], codes: Codes, groups: int) -> Ragged:
    """Return entries with the sums of each group and exponent, none for sums of zero."""
    pairs = codes.astype(np.int64) * _EXPONENTS + (exponents - _LEAST)
    present, place = compact(pairs, groups * _EXPONENTS)
    totals = {name: np.zeros(len(present), np.int64) for name in _SUMS}
    for total, part in zip(totals.values(), sums, strict=True):
        np.add.at(total, place, part)
    for product in ("aa", "ab", "bb"):
        low, high = totals[f"{product}_low"], totals[f"{product}_high"]
        high += low >> _BITS
        low &= _MASK
    if (totals["n"] == 0).any():  # some values were taken back
        kept = np.logical_or.reduce([total != 0 for total in totals.values()])
        present, totals = present[kept], {name: total[kept] for name, total in totals.items()}
    exponent = (present % _EXPONENTS + _LEAST).astype(np.int16)
    entries = pa.StructArray.from_arrays([pa.array(exponent), *map(pa.array, totals.values())], fields=list(_ENTRY))
    return Ragged.of(entries, np.bincount(present // _EXPONENTS, minlength=groups))


def _entries(counts: Ints, totals: list[int], squares: list[int]) -> Ragged:
    """Return sums of integers as entries: limbs of 32 bits with the corresponding exponents."""
    found: list[dict[str, int]] = []
    for count, total, square in zip(counts.tolist(), totals, squares, strict=True):
        at: dict[int, dict[str, int]] = {}
        for place in range(0, total.bit_length(), _BITS):
            entry = at.setdefault(53 + place, dict.fromkeys(_SUMS, 0))
            entry["b"] = (abs(total) >> place & _MASK) * (1 if total > 0 else -1)
        for place in range(0, square.bit_length(), _BITS):
            at.setdefault(53 + place // 2, dict.fromkeys(_SUMS, 0))["bb_low"] = square >> place & _MASK
        if count:
            at.setdefault(53, dict.fromkeys(_SUMS, 0))["n"] = count
        found.append(dict(sorted(at.items())))  # type: ignore[arg-type]
    entries = [{"exponent": exponent, **sums} for of in found for exponent, sums in of.items()]  # type: ignore[dict-item]
    return Ragged.of(pa.array(entries, _ENTRY), np.array([len(of) for of in found], np.int64))


def _variances(lists: Ragged) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the variance of each group, shape (groups,), and a mask of the groups that have one."""
    groups = len(lists)
    group = lists.codes(np.arange(groups))
    exponents = lists.values.field("exponent").to_numpy().astype(np.int64)
    sums = {name: lists.values.field(name).to_numpy() for name in _SUMS}
    n = np.zeros(groups, np.int64)
    np.add.at(n, group, sums["n"])
    highest = np.full(groups, _LEAST, np.int64)
    np.maximum.at(highest, group, exponents)
    total, squares = DoubleDouble.zeros(groups), DoubleDouble.zeros(groups)
    position = np.arange(len(group)) - lists.offsets[group]
    for k in range(int(lists.counts.max(initial=0))):
        at = np.flatnonzero(position == k)
        here, scale = group[at], exponents[at] - highest[group[at]]
        for name, shift in (("a", _HALF), ("b", 0)):
            total.add_at(here, sums[name][at], scale + shift)
        for name, shift in (("aa", 2 * _HALF), ("ab", _HALF + 1), ("bb", 0)):
            squares.add_at(here, sums[f"{name}_high"][at], 2 * scale + shift + _BITS)
            squares.add_at(here, sums[f"{name}_low"][at], 2 * scale + shift)
    defined, count = n > 1, np.maximum(n, 2).astype(np.float64)
    spread = squares.times(count).minus(total.squared())
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = spread.high / count / (count - 1)
        nearly_equal = defined & (spread.high < NEARLY_EQUAL * squares.high * count)
        variances = np.ldexp(deviation, 2 * (highest - 53))
    variances[nearly_equal] = _exactly(lists[nearly_equal])
    variances[highest == _NOT_FINITE] = np.nan
    return variances, defined


def _exactly(lists: Ragged) -> npt.NDArray[np.float64]:
    """Return the variance of each group, at least two values each, by integers of any length."""
    if not len(lists):
        return np.zeros(0)
    starts = lists.offsets[:-1]
    sums = {name: lists.values.field(name).to_numpy().astype(object) for name in _SUMS}
    exponents = lists.values.field("exponent").to_numpy().astype(np.int64)
    least = np.minimum.reduceat(exponents, starts)
    shift = (exponents - np.repeat(least, lists.counts)).astype(object)
    aa, ab, bb = ((sums[f"{name}_high"] << _BITS) + sums[f"{name}_low"] for name in ("aa", "ab", "bb"))
    total = np.add.reduceat(((sums["a"] << _HALF) + sums["b"]) << shift, starts)
    squares = np.add.reduceat(((aa << (2 * _HALF)) + (ab << (_HALF + 1)) + bb) << (2 * shift), starts)
    n = np.add.reduceat(sums["n"], starts)
    pairs = zip((n * squares - total * total).tolist(), (n * (n - 1)).tolist(), (2 * (least - 53)).tolist(), strict=True)
    return np.array([_divided(*pair) for pair in pairs])


def _divided(numerator: int, denominator: int, shift: int) -> float:
    """Return numerator / denominator * 2**shift, rounded once."""
    try:
        return (numerator << shift) / denominator if shift > 0 else numerator / (denominator << -shift)
    except OverflowError:
        return math.inf
