"""Aggregation by a direct-address table: the result equals that of the distinct keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.keys.direct import LEAST, PLACES, direct_keys, plain
from evenflow.engine.operators.aggregation.combine import BatchAggregator, latest
from evenflow.engine.time.sessions import SessionWindows
from evenflow.engine.time.windows import Windows

FUNCTIONS = {
    "n": ef.count(), "values": ef.count("x"), "total": ef.sum("x"), "mean": ef.mean("f"), "least": ef.min("f"), "most": ef.max("x"),
    "some": ef.sum("x", where=ef.col("f") > 0.5), "none": ef.sum("nothing"),
}  # fmt: skip
KINDS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.timestamp("us"), pa.string(), pa.binary()]
WINDOWS = [None, Windows(1_000, 1_000), Windows(600, 200), SessionWindows(300)]


def batch_of(keys, seed, span, *, nulls):
    random = np.random.default_rng(seed)
    x = pa.array(random.integers(-(2**40), 2**40, len(keys)), mask=random.random(len(keys)) < 0.1 if nulls else None)
    columns = {"k": keys, "x": x, "f": random.random(len(keys)), "nothing": pa.nulls(len(keys))}
    return Batch(pa.record_batch(columns), random.integers(10**15, 10**15 + span, len(keys)))


def keys_of(kind, seed, distinct):
    random = np.random.default_rng(seed)
    places = random.zipf(1.3, LEAST) % distinct
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        texts = pa.array([f"key-{number}" for number in range(distinct)]).cast(kind)
        return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), texts)
    return pa.array(places + (100 if distinct < 100 else 0) - (distinct if kind == pa.int64() else 0)).cast(kind)


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32),
    distinct=st.integers(1, 27),
    many=st.booleans(),
    nulls=st.booleans(),
    data=st.data(),
)
@settings(max_examples=25)
def test_partial_aggregates_are_those_of_distinct_keys(windows, kind, seed, distinct, many, nulls, data):
    if many and kind.bit_width > 16 if kind not in (pa.string(), pa.binary()) else many:
        distinct *= 400
    batch = batch_of(keys_of(kind, seed, distinct), seed, data.draw(st.sampled_from((1, 900, 5_000))), nulls=nulls)
    assert direct_keys(batch.rows, ("k",), "count") is not None
    directly, other = (BatchAggregator("count", ("k",), FUNCTIONS, windows) for _ in range(2))
    partial, times, panes = directly.combined(batch)
    expected, codes, expected_panes = other(batch)
    order, expected_order = (rows_in_order(p, of) for p, of in ((partial, panes), (expected, expected_panes)))
    assert partial.keys[0].type == plain(batch.rows).column(0).type
    for mine, theirs in zip(
        [*partial.keys, *directly.aggregator.results(partial)], [*expected.keys, *other.aggregator.results(expected)], strict=True
    ):
        assert mine.take(pa.array(order)).equals(theirs.take(pa.array(expected_order)))
    assert (partial.rows[order] == expected.rows[expected_order]).all()
    if windows is None:
        assert panes is None
        assert (times[order] == latest(batch, codes, len(expected))[expected_order]).all()
    else:
        assert times is None
        assert (panes[order] == expected_panes[expected_order]).all()


def rows_in_order(partial, panes):
    keys = pc.rank(
        partial.keys[0].cast(pa.string()) if partial.keys[0].type == pa.binary() else partial.keys[0], tiebreaker="dense"
    ).to_numpy()
    return np.lexsort((keys, np.zeros(len(keys)) if panes is None else panes))


def test_keys_far_apart_and_a_few_rows_have_no_table():
    def direct(keys):
        return direct_keys(pa.record_batch({"k": keys}), ("k",), "count") is not None

    assert direct(np.arange(LEAST))
    assert not direct(np.arange(LEAST - 1))
    assert direct(np.append(np.arange(LEAST - 1), PLACES * LEAST - 1))
    assert not direct(np.append(np.arange(LEAST - 1), PLACES * LEAST))
    assert not direct(np.arange(LEAST) / 2)
    assert not direct(pa.array([None, *range(LEAST)]))
    assert not direct(pa.array(["a", None] * LEAST).dictionary_encode())
    assert not direct(pa.array(["a"] * LEAST))


def test_a_dictionary_that_is_larger_than_the_batch_is_left_behind():
    texts = pa.array([str(number) for number in range(10 * LEAST)]).dictionary_encode()
    rows = pa.record_batch({"k": texts.slice(5, 3), "x": [1, 2, 3]})
    assert direct_keys(rows, ("k",), "count") is None
    assert plain(rows).to_pydict() == {"k": ["5", "6", "7"], "x": [1, 2, 3]}
    assert plain(rows).schema.types == [pa.string(), pa.int64()]
