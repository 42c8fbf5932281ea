"""Aggregates over rows with weights equal the same aggregates over the rows that are left, however rows come and go."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.aggregates.partial_aggregates import PartialAggregator
from evenflow.engine.aggregates.weighed import WeighedAggregator
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError
from evenflow.engine.weights import WEIGHT

VALUES = {
    "integers": [1, -7, 2**62, None, 3],
    "floats": [0.1, 1e300, -1e-300, math.nan, math.inf, None, 5.0],
    "decimals": [Decimal("1.25"), Decimal("-99999999999999.75"), None, Decimal(3)],
}
FUNCTIONS = {
    "count": ef.count("x"),
    "sum": ef.sum("x"),
    "mean": ef.mean("x"),
    "variance": ef.variance("x"),
    "max": ef.max("x"),
    "min": ef.min("x", where=ef.col("g") == 0),
    "kinds": ef.count_distinct("x"),
    "middle": ef.median("x"),
    "best": ef.top(2, by="x", columns=["x", "g"]),
    "dearest": ef.max_by("g", "x"),
}
ONE = pa.array(["k"])


def aggregator(**functions):
    return WeighedAggregator("step", ("k",), {WEIGHT: ef.count(), **{name: found.weighed() for name, found in functions.items()}})


def partial(weighed, rows, weights, kind):
    batch = pa.record_batch(
        {"x": pa.array(rows, kind), "g": pa.array([hash(row) % 2 for row in rows]), WEIGHT: pa.array(weights, pa.int64())}
    )
    return weighed.aggregate(Batch(batch), np.zeros(len(rows), np.int64), [ONE], 1)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_rows_that_were_taken_back_leave_nothing_behind(values):
    numbers, kind, weighed = Random(1), pa.array(values).type, aggregator(**FUNCTIONS)
    history = [(value, 1) for value in values * 3 if value != 2**62] + [(value, sign) for value in values for sign in (1, -1)]
    left = [value for value in values * 3 if value != 2**62]
    for _ in range(5):
        numbers.shuffle(history)  # a row may be taken back before it arrives
        cut = numbers.randrange(1, len(history))
        pieces = [partial(weighed, *zip(*some, strict=True), kind) for some in (history[:cut], history[cut:])]
        found = weighed.results(weighed.combine(pieces))[1:]
        plain = PartialAggregator("step", ("k",), FUNCTIONS)
        batch = Batch(pa.record_batch({"x": pa.array(left, kind), "g": pa.array([hash(row) % 2 for row in left])}))
        wanted = plain.results(plain.aggregate(batch, np.zeros(len(left), np.int64), [ONE], 1))
        for name, one, other in zip(FUNCTIONS, found, wanted, strict=True):
            assert str(one.to_pylist()) == str(other.to_pylist()), name
        gone = weighed.combine([*pieces, partial(weighed, left, [-1] * len(left), kind)])
        assert weighed.are_gone(gone).tolist() == [True]


def test_group_with_as_many_rows_gone_as_come_may_still_wait_for_one():
    weighed = aggregator(sum=ef.sum("x"))
    early = partial(weighed, [7, 5], [1, -1], pa.int64())
    assert early.parts[0][0].tolist() == [0]
    assert weighed.are_gone(early).tolist() == [False]
    late = weighed.combine([early, partial(weighed, [5], [1], pa.int64())])
    assert weighed.results(late)[1].to_pylist() == [7]


def test_integers_can_be_taken_back_as_floats():
    weighed = aggregator(sum=ef.sum("x"), kinds=ef.count_distinct("x"))
    before = partial(weighed, [2**53, 7], [1, 1], pa.int64())
    weighed.when_rebound(lambda carry: pieces.append(carry(before)))
    pieces = []
    pieces.append(partial(weighed, [0.5, 7.0], [1, -1], pa.float64()))
    assert [column.to_pylist() for column in weighed.results(weighed.combine(pieces))] == [[2], [2.0**53 + 0.5], [2]]


def test_rows_without_weights_are_an_error():
    weighed = aggregator(sum=ef.sum("x"))
    with pytest.raises(ProtocolError, match="`step`: its rows have no weights; there are: x"):
        weighed.aggregate(Batch(pa.record_batch({"x": [1]})), np.zeros(1, np.int64), [ONE], 1)
