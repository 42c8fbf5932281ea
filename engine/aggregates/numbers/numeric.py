"""Sums and means.

Integers, decimals and durations are summed exactly, floats with twice the digits of a float64 (`float_sums.py`). Their sums may
depend on the order of the values, but only where these cancel to less than the last of those digits; all other properties of an
aggregate hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ...errors import RecordError
from ..base import Accumulator, AggregateFunction, Codes, Parts, call
from ..column import InputColumn
from ..untyped import UntypedAccumulator
from .exact import ExactAddends
from .exponent_sums import ExponentSumAccumulator
from .float_sums import FloatAddends


class Addends(Protocol):
    """The arithmetic of adding up values of one type."""

    part_types: tuple[pa.DataType, ...]

    def zero(self, n: int) -> Parts: ...
    def by_group(self, column: pa.Array, codes: Codes, groups: int) -> Parts: ...
    def by_code(self, limbs: Parts, codes: Codes, groups: int) -> Parts: ...
    def plus(self, left: Parts, right: Parts) -> Parts: ...
    def to_float(self, limbs: Parts) -> npt.NDArray[np.float64]: ...
    def to_arrow(self, limbs: Parts, kind: pa.DataType, seen: npt.NDArray[np.bool_]) -> pa.Array: ...


@dataclass(frozen=True, slots=True)
class Sum(AggregateFunction):
    """The aggregate of a column's sum: int64 for integers, float64 for floats, the widest decimal for decimals, a duration for
    durations.

    `exact`: sums of floats are exact too, so that they can take values back.
    """

    column: str
    exact: bool = field(default=False, repr=False)

    def describe(self) -> str:
        return call("sum", self.column)

    def weighed(self) -> AggregateFunction:
        return Sum(self.column, exact=True)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "sum", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator)
        kind = source.type
        if self.exact and pa.types.is_floating(kind):
            return ExponentSumAccumulator(source, mean=False)
        if pa.types.is_duration(kind):
            return SumAccumulator(source, ExactAddends(kind), kind)
        return SumAccumulator(source, *_summable(source, "integers, floats, decimals and durations"))


@dataclass(frozen=True, slots=True)
class Mean(AggregateFunction):
    """The aggregate of a column's mean, float64; `exact` as in `Sum`."""

    column: str
    exact: bool = field(default=False, repr=False)

    def describe(self) -> str:
        return call("mean", self.column)

    def weighed(self) -> AggregateFunction:
        return Mean(self.column, exact=True)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        source = InputColumn.of(schema, "mean", self.column, operator)
        if source.untyped:
            return UntypedAccumulator(operator, pa.float64())
        if self.exact and pa.types.is_floating(source.type):
            return ExponentSumAccumulator(source, mean=True)
        addends, _ = _summable(source, "integers, floats and decimals")
        return MeanAccumulator(source, addends, pa.float64())


def _summable(source: InputColumn, accepted: str) -> tuple[Addends, pa.DataType]:
    """Return the arithmetic for the values, and the type of the sum. Raises RecordError for types without a sum."""
    kind = source.read_type
    if pa.types.is_integer(kind):
        return ExactAddends(kind), pa.int64()
    if pa.types.is_floating(kind):
        return FloatAddends(), pa.float64()
    if pa.types.is_decimal128(kind):
        return ExactAddends(kind), pa.decimal128(38, kind.scale)
    if pa.types.is_decimal256(kind):
        return ExactAddends(kind), pa.decimal256(76, kind.scale)
    raise source.refusal(accepted)


def _carried(addends: Addends, sums: Parts, narrower: Addends) -> Parts:
    """Convert sums of a narrower type to those of `addends`."""
    if isinstance(addends, ExactAddends) and isinstance(narrower, ExactAddends):
        return addends.rescaled(sums, narrower)
    if isinstance(narrower, ExactAddends) and not narrower.scale:
        return FloatAddends.of_integers(narrower.to_ints(sums))
    return narrower.to_float(sums), np.zeros(len(sums[0]))


class _TotalAccumulator(Accumulator):
    """The base of accumulators with a total. Parts: (the total's parts ..., the number of values)."""

    fixed_width = True

    def __init__(self, source: InputColumn, addends: Addends, output_type: pa.DataType) -> None:
        self.source, self.addends = source, addends
        self.operator, self.output_type = source.operator, output_type
        self.part_types = (*addends.part_types, pa.int64())

    def empty(self, n: int) -> Parts:
        return (*self.addends.zero(n), np.zeros(n, np.int64))

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        rows = self.source.rows(batch, codes)
        return (*self.addends.by_group(rows.values, rows.codes, groups), np.bincount(rows.codes, minlength=groups))

    def counted_partial(self, batch: Batch, codes: Codes, groups: int, rows: npt.NDArray[np.int64]) -> Parts:
        values = self.source.values(batch)
        return self.partial(batch, codes, groups) if values.null_count else (*self.addends.by_group(values, codes, groups), rows)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        counts = np.zeros(groups, np.int64)
        np.add.at(counts, codes, parts[-1])
        return (*self.addends.by_code(parts[:-1], codes, groups), counts)

    def merge(self, left: Parts, right: Parts) -> Parts:
        return (*self.addends.plus(left[:-1], right[:-1]), left[-1] + right[-1])

    def negated(self, parts: Parts) -> Parts:
        assert isinstance(self.addends, ExactAddends)
        return (*self.addends.negated(parts[:-1]), -parts[-1])

    def carried(self, parts: Parts, narrower: Self) -> Parts:
        return (*_carried(self.addends, parts[:-1], narrower.addends), parts[-1])


class SumAccumulator(_TotalAccumulator):
    """The accumulator of `sum`, whose result is the total."""

    def finish(self, parts: Parts) -> pa.Array:
        try:
            return self.addends.to_arrow(parts[:-1], self.output_type, parts[-1] > 0)
        except OverflowError as error:
            problem = (
                f"sum(`{self.source.name}`) of one group is {error}, which does not fit {self.output_type}; sum it as a float or a decimal"
            )
        raise RecordError(self.operator, problem)


class MeanAccumulator(_TotalAccumulator):
    """The accumulator of `mean`, whose result is the total divided by the number of values."""

    def finish(self, parts: Parts) -> pa.Array:
        counts = parts[-1]
        return pa.array(self.addends.to_float(parts[:-1]) / np.maximum(counts, 1), pa.float64(), mask=counts <= 0)
