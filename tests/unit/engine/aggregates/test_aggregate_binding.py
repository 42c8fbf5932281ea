"""Aggregates of columns whose type becomes known or widens: results are those of a stream that had the widest types from the
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.aggregates.base import AggregateFunction, Parts
from evenflow.engine.aggregates.binding import Binding
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError

GROUPS = 3
NOTHING = (pa.null(), st.none())
WHOLE = st.integers(-100, 100)
NUMBERS = [NOTHING, (pa.int8(), WHOLE), (pa.uint8(), st.integers(0, 200)), (pa.int64(), WHOLE), (pa.float64(), WHOLE.map(lambda n: n / 4))]
DECIMALS = [NOTHING, *((kind, WHOLE.map(lambda n, s=kind.scale: Decimal(n).scaleb(-s))) for kind in (
    pa.decimal32(9, 1), pa.decimal128(9, 4), pa.decimal128(38, 2), pa.decimal256(60, 2),
))]  # fmt: skip
TEXTS = [NOTHING, *((kind, st.text("abc", max_size=2)) for kind in (pa.string(), pa.large_string(), pa.string_view()))]
BYTES = [NOTHING, *((kind, st.binary(min_size=2, max_size=2)) for kind in (pa.binary(), pa.binary(2), pa.binary_view()))]

ANY = [ef.count("x"), ef.min("x"), ef.max("x"), ef.first("x"), ef.last("x"), ef.approx_distinct("x"), ef.approx_distinct("x", 0.25)]
SUMS = [ef.sum("x"), ef.mean("x"), ef.approx_quantile("x", 0.5)]
CASES = [
    *((function, NUMBERS) for function in ANY + SUMS),
    *((function, DECIMALS) for function in ANY + SUMS),
    *((function, TEXTS) for function in ANY),
    *((function, BYTES) for function in ANY),
]


@dataclass(frozen=True)
class Piece:
    """A batch of one worker: the value and the group of each row; no two rows of a test have the same time."""

    batch: Batch
    codes: np.ndarray

    @property
    def input(self) -> pa.Schema:
        return self.batch.rows.schema


def pieces_of(kinds: Sequence[tuple[pa.DataType, st.SearchStrategy[Any]]], draw: Any) -> list[Piece]:
    pieces, time = [], 0
    for kind, values in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=5)):
        rows = draw(st.lists(st.tuples(st.none() | values, st.integers(0, GROUPS - 1)), max_size=5))
        times = np.arange(time, time + len(rows), dtype=np.int64)
        batch = Batch(pa.record_batch({"x": pa.array([value for value, _ in rows], kind)}), times)
        pieces.append(Piece(batch, np.array([code for _, code in rows], np.int64)))
        time += len(rows)
    return pieces


def bound(function: AggregateFunction, schema: pa.Schema) -> Binding:
    return Binding("op", {"f": function}, schema)


def finished(binding: Binding, parts: Parts) -> pa.Array:
    return binding.accumulators[0].finish(parts)


def name_of(value: Any) -> str:
    return str(value) if isinstance(value, AggregateFunction) else str(value[1][0])


@pytest.mark.few(4)
@pytest.mark.parametrize(("function", "kinds"), CASES, ids=name_of)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_results_are_those_of_the_widest_type_from_the_start(function, kinds, data):
    pieces = pieces_of(kinds, data.draw)
    binding = bound(function, pieces[0].input)
    (accumulator,) = binding.accumulators
    state = accumulator.empty(GROUPS)
    for piece in pieces:
        came = bound(function, piece.input)
        partial = came.accumulators[0].partial(piece.batch, piece.codes, GROUPS)
        sent = came.accumulators[0].from_arrow(came.accumulators[0].to_arrow(partial))
        binding, before = binding.holding(piece.input), binding
        (accumulator,), (kept,), (new,) = binding.accumulators, binding.carried((state,), before), binding.carried((sent,), came)
        state = accumulator.merge(kept, new)
    assert [array.type for array in accumulator.to_arrow(state)] == list(accumulator.part_types)

    widest = bound(function, binding.input)
    everything = widest.accumulators[0].empty(GROUPS)
    for piece in pieces:
        everything = widest.accumulators[0].merge(everything, widest.accumulators[0].partial(piece.batch, piece.codes, GROUPS))
    results, expected = finished(binding, state), finished(widest, everything)
    assert results.type == expected.type == accumulator.output_type
    assert results.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (ef.count("x"), pa.array([0, 0])),
        (ef.sum("x"), pa.nulls(2)),
        (ef.mean("x"), pa.nulls(2, pa.float64())),
        (ef.min("x"), pa.nulls(2)),
        (ef.max("x"), pa.nulls(2)),
        (ef.first("x"), pa.nulls(2)),
        (ef.last("x"), pa.nulls(2)),
        (ef.approx_distinct("x"), pa.array([0, 0])),
        (ef.approx_quantile("x", 0.5), pa.nulls(2, pa.float64())),
    ],
    ids=str,
)
def test_a_column_that_never_gets_a_type_has_results_of_the_aggregates_own_type(function, result):
    binding = bound(function, pa.schema({"x": pa.null()}))
    (accumulator,) = binding.accumulators
    parts = accumulator.partial(Batch(pa.record_batch({"x": pa.nulls(3)})), np.array([0, 0, 1]), 2)
    merged = accumulator.merge(parts, accumulator.combine(parts, np.array([0, 1]), 2))
    assert accumulator.finish(accumulator.from_arrow(accumulator.to_arrow(merged))).equals(result)
    assert accumulator.output_type == result.type


def test_a_sum_beyond_int64_that_came_back_is_right_also_after_it_became_a_float():
    narrow, wide = bound(ef.sum("x"), pa.schema({"x": pa.int64()})), bound(ef.sum("x"), pa.schema({"x": pa.float64()}))
    large = Batch(pa.record_batch({"x": [2**62, 2**62, 2**62]}))
    parts = narrow.accumulators[0].partial(large, np.zeros(3, np.int64), 1)
    assert finished(wide, wide.carried((parts,), narrow)[0]).to_pylist() == [3 * 2.0**62]


def test_negative_decimals_keep_their_sign_and_digits():
    narrow = bound(ef.sum("x"), pa.schema({"x": pa.decimal128(38, 0)}))
    rows = Batch(pa.record_batch({"x": pa.array([Decimal(-(10**37)), Decimal(-7)], pa.decimal128(38, 0))}))
    parts = narrow.accumulators[0].partial(rows, np.zeros(2, np.int64), 1)
    wide = narrow.holding(pa.schema({"x": pa.decimal128(3, 2)}))
    assert wide.input.field("x").type == pa.decimal256(40, 2)
    assert finished(wide, wide.carried((parts,), narrow)[0]).to_pylist() == [Decimal(-(10**37) - 7)]


def test_integers_too_large_for_a_float_are_refused_where_floats_came_too():
    wide = bound(ef.max("x"), pa.schema({"x": pa.float64()}))
    with pytest.raises(RecordError, match=r"max\(`x`\): the column was of type double at first and is int64 now: 9007199254740993"):
        wide.accumulators[0].partial(Batch(pa.record_batch({"x": [2**53 + 1]})), np.zeros(1, np.int64), 1)


def test_a_kept_integer_too_large_for_a_float_is_refused_when_floats_come():
    narrow = bound(ef.max("x"), pa.schema({"x": pa.int64()}))
    parts = narrow.accumulators[0].partial(Batch(pa.record_batch({"x": [2**53 + 1]})), np.zeros(1, np.int64), 1)
    wide = narrow.holding(pa.schema({"x": pa.float64()}))
    with pytest.raises(RecordError, match=r"operator `op`: an aggregate keeps a value .* 9007199254740993 \(int64\) can't be represented"):
        wide.carried((parts,), narrow)


def test_types_that_do_not_go_together_are_named_with_their_column():
    binding = Binding("op", {"a": ef.max("x"), "b": ef.sum("y")}, pa.schema({"x": pa.string(), "y": pa.int64()}))
    with pytest.raises(RecordError, match="operator `op`: column `x` was string and is now int64, and no type holds both: give"):
        binding.holding(pa.schema({"x": pa.int64(), "y": pa.int64()}))


def test_a_type_that_comes_late_and_can_not_be_used_is_refused():
    binding = bound(ef.sum("x"), pa.schema({"x": pa.null()}))
    with pytest.raises(RecordError, match=r"operator `op`: sum\(`x`\): the column is of type string; sum works on"):
        binding.holding(pa.schema({"x": pa.string()}))


def test_a_column_that_goes_missing_is_named_with_those_that_are_there():
    binding = bound(ef.sum("x"), pa.schema({"x": pa.int64()}))
    with pytest.raises(RecordError, match="operator `op`: column `x` was int64 and is now missing; there are: a, b"):
        binding.holding(pa.schema({"a": pa.int64(), "b": pa.int64()}))


def test_columns_that_no_aggregate_reads_may_change():
    binding = bound(ef.sum("x"), pa.schema({"x": pa.int64(), "y": pa.int64()}))
    assert binding.holding(pa.schema({"x": pa.null(), "y": pa.string(), "z": pa.null()})) is binding
