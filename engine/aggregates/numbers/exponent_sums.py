"""Sums and means of floats that can take values back: exact, so that nothing remains of a value that was taken back.

Values that are integers are added up as such (`exact.py`). Any other float64 is an integer M of 53 bits times a power of two; for
each exponent in a group, the number of its values and the sum of their M are kept as integers, as in `variance.py`. So the state
doesn't depend on the order in which values come and go, NaN and infinities can be taken back too, and a group that all values left
equals one that had none. A group keeps 24 bytes, and 26 for each exponent among its values that are no integers.

>>> from .numeric import Sum
>>> sums = Sum("x", exact=True).bind(pa.schema({"x": pa.float64()}), "step")
>>> values = Batch(pa.record_batch({"x": [1e300, 0.1, float("nan")]}))
>>> gone = Batch(pa.record_batch({"x": [float("nan"), 1e300]}))
>>> left = sums.merge(sums.partial(values, np.zeros(3, np.int64), 1), sums.negated(sums.partial(gone, np.zeros(2, np.int64), 1)))
>>> sums.finish(left).to_pylist()
[0.1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ...keys.encoding import compact
from ..base import Accumulator, Codes, Parts
from ..column import InputColumn
from ..kept_values import Ints
from ..ragged import Ragged, joined
from .double_double import DoubleDouble
from .exact import BITS, MASK, ExactAddends

_HALF = 27
"""The split of M = a * 2**27 + b, so that 2**36 values can be added up."""
_SUMS = ("n", "a", "b")
_ENTRY = pa.struct([("exponent", pa.int16()), *((name, pa.int64()) for name in _SUMS)])
_NAN, _INFINITE, _MINUS_INFINITE = 2_000, 2_001, 2_002
"""The exponents of values that are not finite."""
_LEAST, _EXPONENTS = -1_100, 3_200


class ExponentSumAccumulator(Accumulator):
    """An accumulator of a sum, or with `mean` of a mean.

    Parts: (the sum of integers, as two limbs; the number of values; lists with the sums of each exponent once).
    """

    part_types = (pa.int64(), pa.int64(), pa.int64(), pa.large_list(_ENTRY))
    output_type = pa.float64()

    def __init__(self, source: InputColumn, *, mean: bool) -> None:
        self.source, self.mean, self.operator = source, mean, source.operator
        self._integers = ExactAddends(pa.int64())

    def empty(self, n: int) -> Parts:
        return (*self._integers.zero(n), np.zeros(n, np.int64), Ragged.empty(_ENTRY, n))

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        values = rows.values.cast(pa.float64(), safe=False).to_numpy()
        with np.errstate(invalid="ignore"):
            whole = (np.trunc(values) == values) & (np.abs(values) < 2.0**63)
        integers = pa.array(values[whole].astype(np.int64))
        rest = _of_fractions(values[~whole], rows.codes[~whole], groups)
        return (*self._integers.by_group(integers, rows.codes[whole], groups), np.bincount(rows.codes, minlength=groups), rest)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        counts, lists = np.zeros(groups, np.int64), parts[3]
        np.add.at(counts, codes, parts[2])
        return (*self._integers.by_code(parts[:2], codes, groups), counts, _reduced(lists, lists.codes(codes), groups))

    def merge(self, left: Parts, right: Parts) -> Parts:
        return (*self._integers.plus(left[:2], right[:2]), left[2] + right[2], _merged(left[3], right[3]))

    def negated(self, parts: Parts) -> Parts:
        lists: Ragged = parts[3]
        fields = [lists.values.field("exponent"), *(pa.array(-lists.values.field(name).to_numpy()) for name in _SUMS)]
        entries = pa.StructArray.from_arrays(fields, fields=list(_ENTRY))
        return (*self._integers.negated(parts[:2]), -parts[2], Ragged(entries, lists.offsets))

    def carried(self, parts: Parts, narrower: Any) -> Parts:
        if isinstance(narrower, ExponentSumAccumulator):
            return parts
        return (*parts, Ragged.empty(_ENTRY, len(parts[0])))

    def finish(self, parts: Parts) -> pa.Array:
        total, counts = _totals(parts[:2], parts[3]), parts[2]
        with np.errstate(over="ignore", invalid="ignore"):
            return pa.array(total / np.maximum(counts, 1) if self.mean else total, mask=counts <= 0)

    def to_arrow(self, parts: Parts) -> list[pa.Array]:
        return [*(pa.array(part) for part in parts[:3]), parts[3].to_arrow()]

    def from_arrow(self, arrays: Sequence[pa.Array]) -> Parts:
        self.check_types(arrays)
        return (*(array.to_numpy() for array in arrays[:3]), Ragged.from_arrow(arrays[3]))


def _of_fractions(values: npt.NDArray[np.float64], codes: Codes, groups: int) -> Ragged:
    """Return the sums of each group and exponent."""
    if not len(values):
        return Ragged.empty(_ENTRY, groups)
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
    exponent = exponent.astype(np.int64)
    if not finite.all():
        others = values[~finite]
        exponent[~finite] = np.where(np.isnan(others), _NAN, np.where(others > 0, _INFINITE, _MINUS_INFINITE))
    integers = np.ldexp(mantissa, 53).astype(np.int64)
    sums = [np.ones(len(values), np.int64), integers >> _HALF, integers & ((1 << _HALF) - 1)]
    return _by_exponent(exponent, sums, codes, groups)


def _merged(left: Ragged, right: Ragged) -> Ragged:
    if not len(right.values):
        return left
    codes = np.arange(len(left))
    return _reduced(joined([left, right]), np.concatenate([left.codes(codes), right.codes(codes)]), len(left))


def _reduced(lists: Ragged, codes: Codes, groups: int) -> Ragged:
    """Return lists of `groups` groups with the entries of `lists`, which belong to the groups `codes`."""
    if not len(lists.values):
        return Ragged.empty(_ENTRY, groups)
    sums = [lists.values.field(name).to_numpy() for name in _SUMS]
    return _by_exponent(lists.values.field("exponent").to_numpy().astype(np.int64), sums, codes, groups)


def _by_exponent(exponents: Ints, sums: Sequence[Ints], codes: Codes, groups: int) -> Ragged:
    """Return entries with the sums of each group and exponent, none for sums of zero."""
    present, place = compact(codes.astype(np.int64) * _EXPONENTS + (exponents - _LEAST), groups * _EXPONENTS)
    totals = [np.zeros(len(present), np.int64) for _ in _SUMS]
    for total, part in zip(totals, sums, strict=True):
        np.add.at(total, place, part)
    kept = np.logical_or.reduce([total != 0 for total in totals])
    if not kept.all():
        present, totals = present[kept], [total[kept] for total in totals]
    exponent = (present % _EXPONENTS + _LEAST).astype(np.int16)
    entries = pa.StructArray.from_arrays([pa.array(exponent), *map(pa.array, totals)], fields=list(_ENTRY))
    return Ragged.of(entries, np.bincount(present // _EXPONENTS, minlength=groups))


def _totals(limbs: Parts, lists: Ragged) -> npt.NDArray[np.float64]:
    """Return the sum of each group, shape (groups,)."""
    low, high = limbs
    groups = len(low)
    group = lists.codes(np.arange(groups))
    exponents = lists.values.field("exponent").to_numpy().astype(np.int64)
    n, a, b = (lists.values.field(name).to_numpy() for name in _SUMS)
    highest = np.full(groups, 63 + BITS, np.int64)
    np.maximum.at(highest, group, np.where(exponents < _NAN, exponents, _LEAST))
    total, everywhere = DoubleDouble.zeros(groups), np.arange(groups)
    total.add_at(everywhere, high, BITS + 53 - highest)
    total.add_at(everywhere, low & MASK, 53 - highest)
    position = np.arange(len(group)) - lists.offsets[group]
    for k in range(int(lists.counts.max(initial=0))):
        at = np.flatnonzero((position == k) & (exponents < _NAN))
        here = group[at]
        total.add_at(here, a[at], exponents[at] - highest[here] + _HALF)
        total.add_at(here, b[at], exponents[at] - highest[here])
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.ldexp(total.high + total.low, highest - 53)
        for exponent, value in ((_NAN, np.nan), (_INFINITE, np.inf), (_MINUS_INFINITE, -np.inf)):
            sums[group[(exponents == exponent) & (n > 0)]] += value
    return sums
