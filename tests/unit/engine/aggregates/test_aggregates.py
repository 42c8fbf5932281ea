"""The common property of all aggregates: results depend on the rows, not on how they were cut, combined, merged or sent."""

from __future__ import annotations

import math
import pickle
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.aggregates.base import Accumulator, AggregateFunction, Parts
from evenflow.engine.aggregates.filtered import Filtered
from evenflow.engine.aggregates.partial_aggregates import PartialAggregator
from evenflow.engine.aggregates.ragged import joined
from evenflow.engine.batch import Batch
from evenflow.engine.expressions.evaluation import Condition
from evenflow.engine.expressions.trees.text import text_of

GROUPS = 4
Row = tuple[int, Any, int]
"""Group, value, event time."""


@dataclass(frozen=True)
class Case:
    function: AggregateFunction
    kind: pa.DataType
    values: st.SearchStrategy[Any]
    oracle: Callable[[list[Row]], Any] | None
    """A function from the rows of a group that have a value to its result; None if it is only approximated."""
    every_row: bool = False
    ordered: bool = True
    """True if equal states are equal on the wire, not only up to the order of the values in a list."""


class Spread(ef.Aggregate):
    """An accumulator that is changed in place: [lowest, highest, (how many,)]."""

    output_type = "int64"

    def create(self) -> Any:
        return [None, None, (0,)]

    def add(self, accumulator: Any, row: dict[str, Any]) -> Any:
        return accumulator if row["x"] is None else self.merge(accumulator, [row["x"], row["x"], (1,)])

    def merge(self, a: Any, b: Any) -> Any:
        if b[0] is not None:
            a[0], a[1] = (b[0], b[1]) if a[0] is None else (min(a[0], b[0]), max(a[1], b[1]))
            a[2] = (a[2][0] + b[2][0],)
        return a

    def finish(self, accumulator: Any) -> Any:
        low, high, (count,) = accumulator
        return None if not count else (high - low) * count


def values(rows: list[Row]) -> list[Any]:
    return [value for _, value, _ in rows]


def total(rows: list[Row]) -> Any:
    return sum(values(rows)) if rows else None


def mean(rows: list[Row]) -> Any:
    return float(sum(values(rows))) / len(rows) if rows else None


def order(value: Any) -> Any:
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def lowest(rows: list[Row]) -> Any:
    return min(values(rows), key=order, default=None)


def highest(rows: list[Row]) -> Any:
    return max(values(rows), key=order, default=None)


def earliest(rows: list[Row]) -> Any:
    return min(rows, key=lambda row: (row[2], order(row[1])))[1] if rows else None


def latest(rows: list[Row]) -> Any:
    return max(rows, key=lambda row: (row[2], order(row[1])))[1] if rows else None


def spread(rows: list[Row]) -> Any:
    return (max(values(rows)) - min(values(rows))) * len(rows) if rows else None


def exact_quantile(rows: list[Row]) -> Any:
    return float(sorted(values(rows))[math.floor(0.9 * (len(rows) - 1))]) if rows else None


def plain(value: Any) -> Any:
    """Return NaN and the zeros as values that equal themselves alone."""
    return repr(value + 0.0) if isinstance(value, float) else value


def distinct(rows: list[Row]) -> int:
    return len(set(map(plain, values(rows))))


def median(rows: list[Row]) -> Any:
    return interpolated(rows, 0.5)


def interpolated(rows: list[Row], q: float) -> Any:
    if not rows:
        return None
    ordered = sorted(map(float, values(rows)), key=order)
    rank = q * (len(ordered) - 1)
    low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
    part = rank - math.floor(rank)
    if low == high:
        return low
    return low + (high - low) * part if math.isfinite(high - low) else low * (1 - part) + high * part


def collected(rows: list[Row]) -> Any:
    return [value for _, value, _ in sorted(rows, key=lambda row: (row[2], order(row[1])))] or None


def highest_two(rows: list[Row]) -> Any:
    return [{"x": value} for value in sorted(values(rows), key=order, reverse=True)[:2]] or None


def variance(rows: list[Row]) -> Any:
    numbers = list(map(float, values(rows)))
    if len(numbers) < 2:
        return None
    if not all(map(math.isfinite, numbers)):
        return math.nan
    return float(statistics.variance(map(Fraction, numbers)))


INT64 = st.integers(-(2**59), 2**59)
SMALL = st.integers(-100, 100)
WHOLE_FLOATS = SMALL.map(float)
FLOATS = st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])
MONEY = st.decimals(-(10**9), 10**9, places=2)
HUGE = st.decimals(-(10**34), 10**34, places=0)
TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))
DURATIONS = st.timedeltas(timedelta(days=-400), timedelta(days=400))
DATES = st.dates(date(1900, 1, 1), date(2100, 1, 1))

ORDERED_TYPES = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float64(), FLOATS),
    (pa.float32(), FLOATS),
    (pa.float16(), WHOLE_FLOATS),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=3)),
    (pa.string_view(), st.text(max_size=3)),
    (pa.binary(), st.binary(max_size=3)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
    (pa.decimal128(38, 2), MONEY),
    (pa.decimal32(9, 0), st.decimals(-(10**9) + 1, 10**9 - 1, places=0)),
    (pa.decimal256(60, 2), MONEY),
    (pa.date32(), DATES),
    (pa.timestamp("us"), TIMES),
    (pa.timestamp("us", "UTC"), TIMES.map(lambda time: time.replace(tzinfo=UTC))),
    (pa.time32("s"), st.times().map(lambda time: time.replace(microsecond=0))),
    (pa.time64("us"), st.times()),
    (pa.duration("us"), DURATIONS),
]

CASES = [
    Case(ef.count(), pa.int64(), SMALL, len, every_row=True),
    Case(ef.count("x"), pa.string(), st.text(max_size=2), len),
    Case(ef.sum("x"), pa.int64(), INT64, total),
    Case(ef.sum("x"), pa.int8(), st.integers(-128, 127), total),
    Case(ef.sum("x"), pa.uint64(), st.integers(0, 2**58), total),
    Case(ef.sum("x"), pa.float64(), WHOLE_FLOATS, total),
    Case(ef.sum("x"), pa.float16(), WHOLE_FLOATS, total),
    Case(ef.sum("x"), pa.decimal128(38, 2), MONEY, total),
    Case(ef.sum("x"), pa.decimal128(35, 0), HUGE, lambda rows: Decimal(sum(map(int, values(rows)))) if rows else None),
    Case(ef.sum("x"), pa.decimal64(12, 2), st.decimals(-(10**9), 10**9, places=2), total),
    Case(ef.sum("x"), pa.decimal256(60, 2), MONEY, total),
    Case(ef.sum("x"), pa.duration("us"), DURATIONS, lambda rows: sum(values(rows), timedelta()) if rows else None),
    Case(ef.mean("x"), pa.int64(), INT64, mean),
    Case(ef.mean("x"), pa.float32(), WHOLE_FLOATS, mean),
    Case(ef.mean("x"), pa.decimal128(12, 2), MONEY, mean),
    *(Case(ef.min("x"), kind, strategy, lowest) for kind, strategy in ORDERED_TYPES),
    *(Case(ef.max("x"), kind, strategy, highest) for kind, strategy in ORDERED_TYPES),
    *(Case(ef.first("x"), kind, strategy, earliest) for kind, strategy in ORDERED_TYPES[::3]),
    *(Case(ef.last("x"), kind, strategy, latest) for kind, strategy in ORDERED_TYPES[::3]),
    Case(ef.approx_distinct("x"), pa.int64(), SMALL, lambda rows: len(set(values(rows)))),
    Case(ef.approx_distinct("x"), pa.string(), st.text(max_size=1), lambda rows: len(set(values(rows)))),
    Case(ef.approx_distinct("x"), pa.float32(), FLOATS, lambda rows: len({repr(value + 0.0) for value in values(rows)})),
    Case(ef.approx_distinct("x", 0.25), pa.int64(), SMALL, None),
    Case(ef.approx_quantile("x", 0.9), pa.int64(), INT64, exact_quantile),
    Case(ef.approx_quantile("x", 0.9), pa.decimal128(12, 2), MONEY, exact_quantile),
    *(Case(ef.count_distinct("x"), kind, strategy, distinct, ordered=False) for kind, strategy in ORDERED_TYPES[::2]),
    Case(ef.median("x"), pa.int64(), INT64, median, ordered=False),
    Case(ef.median("x"), pa.float32(), FLOATS, median, ordered=False),
    Case(ef.quantile("x", 0.3), pa.decimal128(12, 2), MONEY, lambda rows: interpolated(rows, 0.3), ordered=False),
    Case(ef.quantile("x", 1), pa.uint8(), st.integers(0, 255), lambda rows: interpolated(rows, 1), ordered=False),
    *(Case(ef.collect("x"), kind, strategy, collected, ordered=False) for kind, strategy in ORDERED_TYPES[1::3]),
    *(Case(ef.top(2, "x"), kind, strategy, highest_two) for kind, strategy in ORDERED_TYPES[::2]),
    Case(ef.top(1, [("x", "ascending")], ties=True), pa.float64(), FLOATS, None),
    Case(ef.top(1, [("x", "ascending")], ties=True), pa.string(), st.text(max_size=1), None),
    Case(ef.max_by("x", "x"), pa.float64(), FLOATS, highest),
    Case(ef.min_by("x", "x"), pa.string(), st.text(max_size=3), lowest),
    Case(ef.variance("x"), pa.int64(), INT64, variance),
    Case(ef.variance("x"), pa.float64(), st.floats(allow_nan=False, allow_infinity=False, min_value=-1e150, max_value=1e150), variance),
    Case(ef.variance("x"), pa.float64(), FLOATS, variance),
    Case(ef.variance("x"), pa.float64(), st.floats(1e9, 1e9 + 1e-4), variance),
    Case(ef.stddev("x"), pa.decimal128(12, 2), MONEY, lambda rows: None if len(rows) < 2 else math.sqrt(variance(rows))),
    Case(ef.sum("x", where=ef.col("x") > 0), pa.int64(), SMALL, lambda rows: total([row for row in rows if row[1] > 0])),
    Case(ef.count(where="x"), pa.bool_(), st.booleans(), lambda rows: len([row for row in rows if row[1]])),
    Case(Spread(), pa.int64(), SMALL, spread),
]


def name_of(case: Case) -> str:
    if isinstance(case.function, Filtered):
        return f"{case.function.function} where {case.function.condition}-{case.kind}"
    return f"{case.function}-{case.kind}" if not isinstance(case.function, Spread) else "custom"


def batch_of(rows: list[Row], kind: pa.DataType) -> Batch:
    return Batch(pa.record_batch({"x": pa.array(values(rows), kind)}), np.array([time for *_, time in rows], np.int64))


class Cutter:
    """Computes an aggregate of rows in pieces that are cut and combined by drawn choices."""

    def __init__(self, case: Case, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.kind, self.draw = case.kind, draw
        self.accumulator = pickle.loads(pickle.dumps(case.function)).bind(pa.schema({"x": case.kind}), "op")

    def compute(self, rows: list[Row]) -> Parts:
        pieces = [self.sent(self.piece(cut)) for cut in self.cuts(rows)]
        while len(pieces) > 1:
            left = pieces.pop(self.draw(st.integers(0, len(pieces) - 1)))
            right = pieces.pop(self.draw(st.integers(0, len(pieces) - 1)))
            pieces.append(self.sent(self.together(left, right)))
        return self.accumulator.merge(pieces[0], self.accumulator.empty(GROUPS)) if pieces else self.accumulator.empty(GROUPS)

    def cuts(self, rows: list[Row]) -> list[list[Row]]:
        ends = sorted(self.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
        return [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]

    def piece(self, rows: list[Row]) -> Parts:
        """Return the state after `rows`: directly, or in groups numbered by first occurrence that are combined."""
        codes = np.array([group for group, *_ in rows], np.int64)
        if self.draw(st.booleans()):
            return self.accumulator.partial(batch_of(rows, self.kind), codes, GROUPS)
        present, local = np.unique(codes, return_inverse=True)
        parts = self.accumulator.partial(batch_of(rows, self.kind), local.astype(np.int32), len(present))
        return self.accumulator.combine(parts, present, GROUPS)

    def together(self, left: Parts, right: Parts) -> Parts:
        if self.draw(st.booleans()):
            return self.accumulator.merge(left, right)
        both = tuple(joined([a, b]) for a, b in zip(left, right, strict=True))
        return self.accumulator.combine(both, np.tile(np.arange(GROUPS), 2), GROUPS)

    def sent(self, parts: Parts) -> Parts:
        return self.accumulator.from_arrow(self.accumulator.to_arrow(parts)) if self.draw(st.booleans()) else parts


@pytest.mark.few(12)
@pytest.mark.parametrize("case", CASES, ids=name_of)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_results_do_not_depend_on_how_rows_are_cut_and_merged(case: Case, data: st.DataObject) -> None:
    row = st.tuples(st.integers(0, GROUPS - 1), st.none() | case.values, st.integers(-3, 3))
    rows = data.draw(st.lists(row, max_size=12))
    cutter = Cutter(case, data.draw)
    accumulator = cutter.accumulator

    parts = cutter.compute(data.draw(st.permutations(rows)))
    results = accumulator.finish(parts)
    at_once = accumulator.partial(batch_of(rows, case.kind), np.array([group for group, *_ in rows], np.int64), GROUPS)

    assert results.type == accumulator.output_type
    assert [array.type for array in accumulator.to_arrow(parts)] == list(accumulator.part_types)
    # repr tells NaN from None, and -0.0 from 0.0
    assert on_the_wire(accumulator, parts, case) == on_the_wire(accumulator, at_once, case)
    assert repr(results.to_pylist()) == repr(accumulator.finish(at_once).to_pylist())
    if case.oracle is None:
        return
    in_group = [[r for r in rows if r[0] == group and (case.every_row or r[1] is not None)] for group in range(GROUPS)]
    for result, expected in zip(results.to_pylist(), map(case.oracle, in_group), strict=True):
        agree(result, expected, case)


def on_the_wire(accumulator: Accumulator, parts: Parts, case: Case) -> list[str]:
    groups = [group for array in accumulator.to_arrow(parts) for group in array.to_pylist()]
    return [repr(group) if case.ordered or group is None else repr(sorted(map(repr, group))) for group in groups]


def agree(result: Any, expected: Any, case: Case) -> None:
    if expected is None:
        assert result is None
    elif isinstance(expected, float):
        error = 0.0101 if "Quantile" in repr(case.function) else 1e-14
        assert result == pytest.approx(expected, rel=error, abs=0, nan_ok=True)
    else:
        assert same(result) == same(expected)


def same(value: Any) -> Any:
    """Return the value so that NaN equals itself, and -0.0 equals 0.0."""
    if isinstance(value, list):
        return [same(element) for element in value]
    return {name: same(field) for name, field in value.items()} if isinstance(value, dict) else plain(value)


@pytest.mark.few(12)
@pytest.mark.parametrize("case", CASES, ids=name_of)
@settings(max_examples=settings().max_examples // 6)
@given(data=st.data())
def test_merging_changes_neither_side(case: Case, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(st.just(0), st.none() | case.values, st.integers(-3, 3)), min_size=2, max_size=6))
    accumulator = case.function.bind(pa.schema({"x": case.kind}), "op")
    left, right = (accumulator.partial(batch_of(half, case.kind), np.zeros(len(half), np.int64), 1) for half in (rows[::2], rows[1::2]))
    before = repr([[array.to_pylist() for array in accumulator.to_arrow(parts)] for parts in (left, right)])
    accumulator.finish(accumulator.merge(left, right))
    accumulator.combine(tuple(joined([a, b]) for a, b in zip(left, right, strict=True)), np.array([0, 0]), 1)
    assert repr([[array.to_pylist() for array in accumulator.to_arrow(parts)] for parts in (left, right)]) == before


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_rows_and_no_groups_are_fine(case: Case) -> None:
    accumulator = case.function.bind(pa.schema({"x": case.kind}), "op")
    nothing = accumulator.partial(batch_of([], case.kind), np.zeros(0, np.int64), 0)
    for parts in (
        nothing,
        accumulator.merge(nothing, nothing),
        accumulator.combine(nothing, np.zeros(0, np.int64), 0),
        accumulator.empty(0),
    ):
        assert accumulator.finish(parts).to_pylist() == []
        assert accumulator.nbytes(parts) == 0
    assert len(accumulator.finish(accumulator.combine(nothing, np.zeros(0, np.int64), 2))) == 2


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_state_of_some_bytes_is_counted(case: Case) -> None:
    accumulator = case.function.bind(pa.schema({"x": case.kind}), "op")
    assert accumulator.nbytes(accumulator.empty(1000)) >= 1000


def test_equal_conditions_are_evaluated_once_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def true_rows(condition: Condition, batch: Batch) -> Any:
        asked.append(text_of(condition.tree))
        return np.array([n > 1 for n in batch.rows["n"].to_pylist()])

    monkeypatch.setattr(Condition, "true_rows", true_rows)
    few, many = ef.col("n") > 1, ef.col("n") > 2
    functions = {"a": ef.count(where=few), "b": ef.sum("n", where=pickle.loads(pickle.dumps(few))), "c": ef.count(where=many)}
    batches = [Batch(pa.record_batch({"n": numbers})) for numbers in ([1, 2, 3], [3, 4, 1])]
    aggregator = PartialAggregator("step", (), functions)
    for batch, expected in zip(batches, ([2, 5, 2], [2, 7, 2]), strict=True):
        asked.clear()
        partial = aggregator.aggregate(batch, np.zeros(3, np.int64), (), 1)
        assert [column.to_pylist()[0] for column in aggregator.results(partial)] == expected
        assert sorted(asked) == [repr(few), repr(many)]
