"""User-defined aggregates: plain Python over rows, with the same kind of state as the built-in ones.

>>> import numpy as np
>>> class Longest(Aggregate):
...     output_type = "string"
...     def create(self): return ""
...     def add(self, accumulator, row): return max(accumulator, row["word"], key=lambda word: (len(word), word))
...     def merge(self, a, b): return max(a, b, key=lambda word: (len(word), word))
...     def finish(self, accumulator): return accumulator
>>> accumulator = Longest().bind(pa.schema({"word": pa.string()}), "longest")
>>> batch = Batch(pa.record_batch({"word": ["to", "stream", "a", "river"]}))
>>> accumulator.finish(accumulator.partial(batch, np.array([0, 0, 1, 1]), 2)).to_pylist()
['stream', 'river']
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from ....state.packed_types import MADE_OF
from ....state.packing import first_foreign, pack_value, problem_of, unpack_value
from ...batch import Batch
from ...errors import FlowError, ProtocolError, RecordError, shown
from ...types.names import type_named
from ...types.python_values import REFUSALS, array_of
from ..base import Accumulator, AggregateFunction, Codes, Parts, call, objects, sampled_bytes

_IMMUTABLE = (int, float, str, bytes, bool, type(None))


class Aggregate(AggregateFunction):
    """The base class of user-defined aggregates.

    An aggregate must be associative and commutative: rows are added in any order, to several accumulators, which are merged in
    any order, and the result must be the same. An accumulator consists of the types that a state may have: numbers, strings,
    times, decimals, and lists, tuples, sets and dicts of them.
    """

    column: str | None = None
    whole_rows = True

    output_type: pa.DataType | str | None = None
    """The type of the results, as an Arrow type or its name ("int64", "string"); None infers it from the results."""

    @abstractmethod
    def create(self) -> Any:
        """Return a new accumulator without rows: merging it into another changes nothing."""

    @abstractmethod
    def add(self, accumulator: Any, row: dict[str, Any]) -> Any:
        """Return the accumulator after `row`. You may change `accumulator` and return it."""

    @abstractmethod
    def merge(self, a: Any, b: Any) -> Any:
        """Return both accumulators merged. You may change `a` and return it; `b` must not change."""

    @abstractmethod
    def finish(self, accumulator: Any) -> Any:
        """Return the result. The accumulator must not change: more rows may follow."""

    def describe(self) -> str:
        settings = {name: value for name, value in sorted(vars(self).items()) if type(value) in _IMMUTABLE}
        return call(type(self).__name__, **settings)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        return CustomAccumulator(self, operator)


class CustomAccumulator(Accumulator):
    """The accumulator of a user's aggregate. Parts: (accumulator,), an object array; on the wire msgpack."""

    part_types = (pa.large_binary(),)

    def __init__(self, aggregate: Aggregate, operator: str) -> None:
        self.aggregate, self.operator = aggregate, operator
        self.name = type(aggregate).__name__
        self.output_type = _resolved(aggregate.output_type, self.name, operator)

    def empty(self, n: int) -> Parts:
        return self._checked([self._call(self.aggregate.create) for _ in range(n)])

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        (accumulators,) = self.empty(groups)
        add, row = self.aggregate.add, None
        try:
            for code, row in zip(codes.tolist(), batch.to_rows(), strict=True):
                accumulators[code] = add(accumulators[code], row)
        except BaseException as error:
            raise self._failure("add", error, row) from error
        if groups and any(accumulator is None for accumulator in accumulators) and self._call(self.aggregate.create) is not None:
            raise RecordError(self.operator, f"{self.name}.add returned None: return the accumulator", record=row)
        return self._checked(accumulators)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        merged: list[Any] = [_NOTHING] * groups
        for code, accumulator in zip(codes.tolist(), parts[0], strict=True):
            before = merged[code]
            merged[code] = self._owned(accumulator) if before is _NOTHING else self._call(self.aggregate.merge, before, accumulator)
        return self._checked([self._call(self.aggregate.create) if value is _NOTHING else value for value in merged])

    def merge(self, left: Parts, right: Parts) -> Parts:
        pairs = zip(left[0], right[0], strict=True)
        return self._checked([self._call(self.aggregate.merge, self._owned(a), b) for a, b in pairs])

    def finish(self, parts: Parts) -> pa.Array:
        results = [self._call(self.aggregate.finish, accumulator) for accumulator in parts[0]]
        try:
            return array_of(results, self.output_type, declared=self.output_type is not None)
        except REFUSALS as error:
            raise RecordError(self.operator, f"{self.name}.finish: {self._misfit(results)}: {error}") from error

    def to_arrow(self, parts: Parts) -> list[pa.Array]:
        return [pa.array([self._packed(accumulator) for accumulator in parts[0]], self.part_types[0])]

    def from_arrow(self, arrays: Sequence[pa.Array]) -> Parts:
        self.check_types(arrays)
        try:
            return (objects([unpack_value(data) for data in arrays[0].to_pylist()]),)
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise ProtocolError(f"operator `{self.operator}`: an accumulator of {self.name} is not valid msgpack: {error}") from error

    def nbytes(self, parts: Parts) -> int:
        return sampled_bytes(parts[0], lambda accumulator: len(self._packed(accumulator)))

    def _owned(self, accumulator: Any) -> Any:
        """Return the accumulator if it is immutable, otherwise a copy."""
        return accumulator if type(accumulator) in _IMMUTABLE else unpack_value(self._packed(accumulator))

    def _packed(self, accumulator: Any) -> bytes:
        try:
            return pack_value(accumulator)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._unsaveable(accumulator) from error

    def _checked(self, accumulators: Any) -> Parts:
        """Return accumulators as parts. Raises RecordError for one that can't be saved or sent."""
        wrong = first_foreign(accumulators)
        if wrong is not None:
            raise self._unsaveable(accumulators[wrong])
        return (accumulators,) if isinstance(accumulators, np.ndarray) else (objects(accumulators),)

    def _unsaveable(self, accumulator: Any) -> RecordError:
        problem = f"{self.name}: the accumulator can't be saved: {problem_of(accumulator, 'accumulator')}; it is made of {MADE_OF}"
        return RecordError(self.operator, problem)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as error:
            raise self._failure(function.__name__, error, arguments or None) from error

    def _failure(self, method: str, error: BaseException, record: Any) -> RecordError:
        return RecordError(self.operator, f"{self.name}.{method} raised {shown(error)}", record=record)

    def _misfit(self, results: list[Any]) -> str:
        """Describe the first result that can't be converted."""
        for result in results:
            try:
                array_of([result], self.output_type, declared=self.output_type is not None)
            except REFUSALS:
                return f"the result {result!r:.500} is not {'of a type that Arrow knows' if self.output_type is None else self.output_type}"
        return "the results are of several types; set `output_type`"


_NOTHING = object()


def _resolved(output_type: pa.DataType | str | None, name: str, operator: str) -> pa.DataType | None:
    if output_type is None:
        return None
    try:
        return type_named(output_type)
    except ValueError as error:
        raise FlowError(f"operator `{operator}`: {name}.output_type: {error}") from error
