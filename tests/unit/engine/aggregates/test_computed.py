"""Aggregates of expressions: computed once, for the rows of the condition, seen by no other aggregate."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.building.aggregates import make_window_aggregate
from evenflow.engine.aggregates.partial_aggregates import PartialAggregator
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.expressions.program import Program

PRICE, QTY = ef.col("price"), ef.col("qty")


class Columns(ef.Aggregate):
    """The columns that a user's aggregate sees."""

    output_type = "string"

    def create(self):
        return ""

    def add(self, accumulator, row):
        return max(accumulator, ",".join(row))

    def merge(self, a, b):
        return max(a, b)

    def finish(self, accumulator):
        return accumulator


def results(functions, *batches):
    """Return the results over all batches, as dicts of one value each."""
    aggregator, parts = PartialAggregator("step", (), functions), []

    def carry_over(carry):
        parts[:] = map(carry, parts)

    aggregator.when_rebound(carry_over)
    for columns in batches:
        batch = Batch(pa.record_batch(columns))
        parts.append(aggregator.aggregate(batch, np.zeros(batch.num_rows, np.int64), (), 1))
    merged = aggregator.grouped(parts, (), np.zeros(len(parts), np.int64), 1)
    return {name: column.to_pylist()[0] for name, column in zip(functions, aggregator.results(merged), strict=True)}


ALL = {
    "count": (ef.count(PRICE * QTY), 2),
    "sum": (ef.sum(PRICE * QTY), 26),
    "mean": (ef.mean(PRICE * QTY), 13.0),
    "variance": (ef.variance(PRICE * QTY), 98.0),
    "stddev": (ef.stddev(PRICE * 0), 0.0),
    "min": (ef.min(PRICE * QTY), 6),
    "max": (ef.max(-PRICE), -2),
    "first": (ef.first(PRICE - 1), 1),
    "last": (ef.last(PRICE + 1), 8),
    "max_by": (ef.max_by(PRICE * 2, by=-QTY), 4),
    "min_by": (ef.min_by("price", by=-QTY), 5),
    "top": (ef.top(1, by=PRICE * QTY), [{"price": 5, "qty": 4}]),
    "top of columns": (ef.top(2, by=[(QTY % 2, "ascending"), ("price", "descending")], columns=["price"]), [{"price": 5}, {"price": 2}]),
    "collect": (ef.collect(PRICE % 5), [0, 2, 2]),
    "count_distinct": (ef.count_distinct(PRICE % 5), 2),
    "median": (ef.median(PRICE * 2), 10.0),
    "quantile": (ef.quantile(PRICE * 2, 0.5), 10.0),
    "approx_distinct": (ef.approx_distinct(PRICE * 2), 3),
    "approx_quantile": (ef.approx_quantile(PRICE * 0, 0.5), 0.0),
}
ROWS = ({"price": [2, 5], "qty": [3, 4]}, {"price": [7], "qty": pa.nulls(1)})


@pytest.mark.parametrize("name", ALL)
def test_each_aggregate_takes_an_expression(name):
    function, expected = ALL[name]
    assert results({"a": pickle.loads(pickle.dumps(function))}, *ROWS) == {"a": expected}


def test_no_other_aggregate_sees_what_is_computed():
    functions = {"total": ef.sum(PRICE * QTY), "seen": Columns(), "best": ef.top(1, by=PRICE * -1)}
    assert results(functions, *ROWS) == {"total": 26, "seen": "price,qty", "best": [{"price": 2, "qty": 3}]}


def test_equal_expressions_are_computed_once_for_a_batch(monkeypatch):
    runs = []
    run = Program.run
    monkeypatch.setattr(Program, "run", lambda program, rows: runs.append(rows.num_rows) or run(program, rows))
    positive = {"where": "keep"}
    functions = {
        "a": ef.sum(PRICE * QTY), "b": ef.max(PRICE * QTY), "c": ef.sum(PRICE * QTY, **positive), "d": ef.min(PRICE * QTY, **positive),
    }  # fmt: skip
    columns = {"price": [2, 5, 7], "qty": [3, 4, 1], "keep": [True, False, True]}
    assert results(functions, columns) == {"a": 33, "b": 20, "c": 13, "d": 6}
    assert sorted(runs) == [2, 3]


def test_expression_is_computed_only_where_the_condition_is_true():
    ratio = ef.max(PRICE // QTY, where=QTY != 0)
    assert results({"a": ratio}, {"price": [6, 1], "qty": [3, 0]}) == {"a": 2}
    with pytest.raises(RecordError, match=r"(?s)operator `step`: price // qty fails: division by zero.*record: {'price': 1, 'qty': 0}"):
        results({"a": ef.max(PRICE // QTY)}, {"price": [6, 1], "qty": [3, 0]})


def test_column_that_gets_a_wider_type_gives_the_results_of_the_wider_type():
    functions = {"total": ef.sum(PRICE * 2), "n": ef.count(PRICE.fill_null(0)), "texts": ef.max(ef.col("s").str.upper())}
    late = [
        {"price": pa.nulls(2), "s": pa.nulls(2)},
        {"price": [1, 2], "s": ["a", None]},
        {"price": [0.5], "s": pa.array(["b"], pa.large_string())},
    ]
    assert results(functions, *late) == {"total": 7.0, "n": 5, "texts": "B"}


def test_description_of_saved_state_has_the_expression():
    assert ef.sum(PRICE * QTY, where=PRICE > 1).describe() == "sum(price * qty) where (price > 1)"
    assert ef.sum(ef.col("price")).describe() == ef.sum("price").describe()
    assert ef.top(2, by=PRICE * 2).describe() == "top(2, by=[(price * 2, 'descending')], ties=False)"


def test_late_records_of_a_window_are_the_rows_of_its_input(drive):
    step = drive(make_window_aggregate(("k",), ef.tumbling("10s"), {"total": ef.sum(ef.col("x") * 2)}, "final", None, 0))
    step.process({"k": ["a"], "x": [1]}, [100_000_000])
    step.advance(50_000_000)
    step.process({"k": ["a"], "x": [3]}, [1])
    assert step.rows["late"] == [{"k": "a", "x": 3}]
