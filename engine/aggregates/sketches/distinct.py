"""The approximate number of distinct values: HyperLogLog with Ertl's estimator, exact for few values.

A group keeps the hashes of its values while they take less room than m = 2**p registers, so counts below m / 8 are exact (up to
collisions of 44-bit hashes); above that, it keeps the registers. The standard error is 1.04 / sqrt(m), up to about 10**12
distinct values.

Sources: Flajolet, Fusy, Gandouet, Meunier, HyperLogLog, 2007; Heule, Nunkesser, Hall, HyperLogLog in Practice, 2013 (64-bit
hashes, a sparse form for small counts); Ertl, New cardinality estimation algorithms for HyperLogLog sketches, 2017 (algorithm
6, which needs no tables of bias).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....state.hashing import UnhashableKey, hash64, mix
from ...batch import Batch
from ...keys.key_values import PER_SECOND
from ..base import Accumulator, AggregateFunction, Array, Codes, Parts, call
from ..column import InputColumn
from ..untyped import UntypedAccumulator
from .sketch import SketchAccumulator, cut, entries_of, first_of_runs, sketch_sizes

_HASH_BITS = 44
_CODES_AT_ONCE = 1 << (64 - _HASH_BITS)
_NAN_HASH = np.uint64(0x4E614E4E614E4E61)
_OTHER = np.uint64(0x6F746865726F7468)
"""A mask that distinguishes the hashes of special values from those of values with the same bits."""
_LARGEST = np.iinfo(np.int64).max
_LEAST_NORMAL = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True)
class ApproxDistinct(AggregateFunction):
    """The aggregate of the number of distinct non-null values, with a standard error of `relative_error`.

    All NaN are one value.
    """

    column: str
    relative_error: float

    def describe(self) -> str:
        return call("approx_distinct", self.column, relative_error=self.relative_error)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "approx_distinct", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator, pa.int64(), 0)
        try:
            hash64(pa.array([], source.read_type))
        except UnhashableKey:
            raise source.refusal("numbers, booleans, strings, bytes, dates, times, timestamps and durations") from None
        return DistinctAccumulator(source, math.ceil(2 * math.log2(1.04 / self.relative_error)))


class DistinctAccumulator(SketchAccumulator):
    """An accumulator whose sketch is m bytes of registers, or fewer: the sorted 44-bit hashes, 8 bytes each."""

    def __init__(self, source: InputColumn, precision: int) -> None:
        super().__init__(source, pa.int64())
        self.precision = precision
        self.registers = 1 << precision
        self.exact_limit = self.registers // 8 - 1

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        hashes = _hashes(rows.values) >> np.uint64(64 - _HASH_BITS)
        return (self._sketches(*_distinct(rows.codes, hashes, groups), {}, groups),)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        sketches = parts[0]
        dense = sketch_sizes(sketches) == self.registers
        known: dict[int, Array] = {}
        for code, sketch in zip(codes[dense].tolist(), sketches[dense], strict=True):
            registers = np.frombuffer(sketch, np.uint8)
            known[code] = np.maximum(known[code], registers) if code in known else registers
        row_codes, hashes = entries_of(sketches[~dense], codes[~dense], np.uint64)
        return (self._sketches(*_distinct(row_codes, hashes, groups), known, groups),)

    def finish(self, parts: Parts) -> pa.Array:
        sketches = parts[0]
        sizes = sketch_sizes(sketches)
        counts = sizes // 8
        dense = np.flatnonzero(sizes == self.registers)
        if len(dense):
            counts[dense] = np.rint(self._estimates(sketches[dense]))
        return pa.array(counts, pa.int64())

    def malformed(self, sketch: bytes) -> bool:
        if len(sketch) == self.registers:
            return max(sketch) > _HASH_BITS - self.precision + 1
        return len(sketch) % 8 != 0 or len(sketch) > 8 * self.exact_limit

    def _sketches(self, codes: Codes, hashes: Array, known: dict[int, Array], groups: int) -> Array:
        """Return the sketch of each group, from distinct hashes in the order of `codes` and from registers."""
        counts = np.bincount(codes, minlength=groups)
        dense = counts > self.exact_limit
        dense[list(known)] = True
        if not dense.any():
            return cut(hashes, counts)
        in_registers = dense[codes]
        sketches = cut(hashes[~in_registers], np.where(dense, 0, counts))
        filled = self._fill(codes[in_registers], hashes[in_registers], known, np.flatnonzero(dense))
        for code, registers in zip(np.flatnonzero(dense), filled, strict=True):
            sketches[code] = registers.tobytes()
        return sketches

    def _fill(self, codes: Codes, hashes: Array, known: dict[int, Array], dense: npt.NDArray[np.intp]) -> npt.NDArray[np.uint8]:
        """Return registers, shape (dense groups, m): the highest rank of a first one-bit among the hashes of each register."""
        filled = np.zeros((len(dense), self.registers), np.uint8)
        for slot, code in enumerate(dense.tolist()):
            if code in known:
                filled[slot] = known[code]
        rest_bits = _HASH_BITS - self.precision
        register = (hashes >> np.uint64(rest_bits)).astype(np.int64)
        rest = (hashes & np.uint64((1 << rest_bits) - 1)).astype(np.float64)
        rank = (rest_bits + 1 - np.frexp(rest)[1]).astype(np.uint8)
        np.maximum.at(filled.reshape(-1), np.searchsorted(dense, codes) * self.registers + register, rank)
        return filled

    def _estimates(self, sketches: Array) -> npt.NDArray[np.float64]:
        """Return Ertl's estimate of each sketch of registers, shape (n,)."""
        n, m, q = len(sketches), self.registers, _HASH_BITS - self.precision
        ranks = np.frombuffer(b"".join(sketches), np.uint8).reshape(n, m)
        per_rank = np.bincount((np.arange(n)[:, None] * (q + 2) + ranks).ravel(), minlength=n * (q + 2)).reshape(n, q + 2)
        z = m * _tau(1 - per_rank[:, q + 1] / m)
        for rank in range(q, 0, -1):
            z = 0.5 * (z + per_rank[:, rank])
        z = z + m * _sigma(per_rank[:, 0] / m)
        estimates: npt.NDArray[np.float64] = m * m / (2 * math.log(2) * z)
        return estimates


def _hashes(column: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the hash of each value; a float without a fraction has the hash of the integer, because a column's type may widen.

    The bits of subnormal floats are small integers, and long times are equal modulo 2**64 nanoseconds: those have hashes of their
    own.
    """
    if pa.types.is_temporal(column.type) and not pa.types.is_date(column.type):
        return _time_hashes(column)
    if not pa.types.is_floating(column.type):
        return hash64(column)
    values = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    whole = (integers == values) & (integers < _LARGEST)
    hashes = mix(np.where(whole, integers, values.view(np.int64)).view(np.uint64))
    subnormal = ~whole & (np.abs(values) < _LEAST_NORMAL)
    if subnormal.any():
        hashes[subnormal] = mix(hashes[subnormal] ^ _OTHER)
    not_a_number = np.isnan(values)
    if not_a_number.any():
        hashes[not_a_number] = _NAN_HASH
    return hashes


def _time_hashes(column: pa.Array) -> npt.NDArray[np.uint64]:
    hashes, nanoseconds = hash64(column), 1_000_000_000 // PER_SECOND[column.type.unit]
    counts = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).to_numpy().astype(np.int64)
    long = np.abs(counts // 2) > _LARGEST // (2 * nanoseconds)
    if long.any():
        hashes[long] = mix(mix(counts[long].view(np.uint64)) ^ _OTHER)
    return hashes


def _distinct(codes: Codes, hashes: Array, groups: int) -> tuple[Codes, Array]:
    """Return each pair of a code and a hash once, in order. Sorting pairs as one integer is thirty times faster than as two."""
    found: list[tuple[Codes, Array]] = []
    for start in range(0, max(groups, 1), _CODES_AT_ONCE):
        here = slice(None) if groups <= _CODES_AT_ONCE else (codes >= start) & (codes < start + _CODES_AT_ONCE)
        pairs = np.sort(((codes[here] - start).astype(np.uint64) << np.uint64(_HASH_BITS)) | hashes[here])
        pairs = pairs[first_of_runs(pairs)]
        found.append(((pairs >> np.uint64(_HASH_BITS)).astype(np.int64) + start, pairs & np.uint64((1 << _HASH_BITS) - 1)))
    return np.concatenate([codes for codes, _ in found]), np.concatenate([hashes for _, hashes in found])


def _sigma(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute x + sum of x**(2**k) * 2**(k - 1), infinite at 1 (Ertl 2017, algorithm 6)."""
    y, z, before = 1.0, x.copy(), np.full_like(x, -1.0)
    while (z != before).any():
        x = x * x
        before, z, y = z, z + x * y, y + y
    return z


def _tau(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute (1 - x - sum of (1 - x**(2**-k))**2 * 2**-k) / 3, 0 at 0 and at 1 (Ertl 2017, algorithm 6)."""
    inside = x > 0
    y, z, before = 1.0, 1 - x, np.full_like(x, -1.0)
    while (z != before).any():
        x = np.sqrt(x)
        y *= 0.5
        before, z = z, z - (1 - x) ** 2 * y
    return np.where(inside, z / 3, 0.0)
