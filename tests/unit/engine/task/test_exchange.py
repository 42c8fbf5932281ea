"""Exchanges: the target of each row, and the batches that are sent."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.keys.encoding import key_groups
from evenflow.engine.protocol.effects import Sent
from evenflow.engine.protocol.elements import Barrier, LatencyMark, Watermark
from evenflow.engine.protocol.routing import even_table
from evenflow.engine.task.exchange import RebalanceExchange
from evenflow.engine.task.hash_exchange import HashExchange

GROUPS = 16


def rows(keys, first=0, times=False):
    count = len(keys)
    numbers = list(range(first, first + count))
    return Batch(pa.record_batch({"k": keys, "seq": numbers}), np.array(numbers) if times else None)


def hashed(workers, batch_rows=1000):
    return HashExchange(range(workers), batch_rows, "step", ("k",), even_table(GROUPS, workers))


def flushed(exchange):
    out: list[Sent] = []
    exchange.flush(out)
    return out


@given(batches=st.lists(st.lists(st.integers(-20, 20), min_size=1), max_size=5), workers=st.integers(1, 5), batch_rows=st.integers(1, 50))
def test_every_row_goes_in_order_to_the_worker_that_owns_its_key(batches, workers, batch_rows):
    exchange, out, first = hashed(workers, batch_rows), [], 0
    for keys in batches:
        exchange.push(rows(keys, first, times=True), 0.0, out)
        first += len(keys)
    out += flushed(exchange)
    owners = even_table(GROUPS, workers)
    everything = [(key, seq) for seq, key in enumerate(key for keys in batches for key in keys)]
    found = []
    for worker in range(workers):
        mine = [sent.element for sent in out if sent.channel == worker]
        pairs = [(row["k"], row["seq"]) for batch in mine for row in batch.to_rows()]
        assert [seq for _, seq in pairs] == sorted(seq for _, seq in pairs)
        assert [time for batch in mine for time in batch.times.tolist()] == [seq for _, seq in pairs]
        groups = key_groups([pa.array([key for key, _ in pairs], pa.int64())], GROUPS, "step")
        assert all(owners.groups[group] == worker for group in groups.tolist())
        found += pairs
    assert sorted(found) == sorted(everything)


def test_null_keys_all_go_to_one_worker():
    exchange = hashed(4)
    exchange.push(rows([None, "a", None]), 0.0, [])
    exchange.push(Batch(pa.record_batch({"k": pa.nulls(2), "seq": [3, 4]})), 0.0, [])
    with_null = {sent.channel for sent in flushed(exchange) if sent.element.rows["k"].null_count}
    assert len(with_null) == 1


def test_key_that_can_not_be_hashed_is_refused_by_name():
    with pytest.raises(RecordError, match="operator `step`: this key can't be hashed"):
        hashed(2).push(Batch(pa.record_batch({"k": [[1], [2]], "seq": [0, 1]})), 0.0, [])


def test_missing_key_column_is_named():
    with pytest.raises(RecordError, match="operator `step`: no key column `k`; there are: x"):
        hashed(2).push(Batch(pa.record_batch({"x": [1]})), 0.0, [])


def test_small_batches_are_sent_as_one():
    exchange, out = RebalanceExchange([0], 4), []
    for first in range(3):
        exchange.push(rows([1], first), 0.0, out)
    assert out == []
    exchange.push(rows([1], 3), 0.0, out)
    assert [sent.element.num_rows for sent in out] == [4]


def test_column_of_nulls_takes_the_type_of_the_batches_around_it():
    exchange = RebalanceExchange([0], 100)
    exchange.push(Batch(pa.record_batch({"k": pa.nulls(1)})), 0.0, [])
    exchange.push(Batch(pa.record_batch({"k": ["a"]})), 0.0, [])
    (sent,) = flushed(exchange)
    assert sent.element.rows.to_pydict() == {"k": [None, "a"]}


def test_batches_of_other_columns_are_never_mixed():
    exchange = RebalanceExchange([0], 100)
    for columns in ({"a": [1]}, {"a": [2]}, {"b": [3]}, {"a": [4]}):
        exchange.push(Batch(pa.record_batch(columns)), 0.0, [])
    assert [sent.element.rows.to_pydict() for sent in flushed(exchange)] == [{"a": [1, 2]}, {"b": [3]}, {"a": [4]}]


@pytest.mark.parametrize(
    ("columns", "leave"),
    [
        pytest.param([[1], [2], [0.5], [3]], [[1, 2], [0.5], [3]], id="int64 and double"),
        pytest.param([[None], [1], [None], [0.5], [None]], [[None, 1, None], [0.5, None]], id="nulls go with either"),
        pytest.param([["a"], [1]], [["a"], [1]], id="string and int64"),
        pytest.param([[{"x": 1}], [{"x": 0.5}]], [[{"x": 1}], [{"x": 0.5}]], id="inside a struct"),
        pytest.param([[[None]], [[1]]], [[[None]], [[1]]], id="nulls inside a list"),
    ],
)
def test_columns_of_other_types_are_never_mixed(columns, leave):
    exchange = RebalanceExchange([0], 100)
    for number, column in enumerate(columns):
        exchange.push(Batch(pa.record_batch({"n": [number], "k": column})), 0.0, [])
    assert [sent.element.rows["k"].to_pylist() for sent in flushed(exchange)] == leave


def test_batches_with_and_without_event_times_are_never_mixed():
    exchange = RebalanceExchange([0], 100)
    exchange.push(rows([1], times=True), 0.0, [])
    exchange.push(rows([1]), 0.0, [])
    assert [sent.element.times is None for sent in flushed(exchange)] == [False, True]


@given(sizes=st.lists(st.integers(0, 40), max_size=8), workers=st.integers(1, 5), batch_rows=st.integers(1, 50))
def test_rows_are_dealt_out_evenly_and_in_order_however_large_the_batches_are(sizes, workers, batch_rows):
    exchange, out, first = RebalanceExchange(range(workers), batch_rows), [], 0
    for size in sizes:
        exchange.push(rows([1] * size, first, times=True), 0.0, out)
        first += size
    exchange.flush(out)
    dealt = [[] for _ in range(workers)]
    for sent in out:
        assert sent.element.times.tolist() == sent.element.rows["seq"].to_pylist()
        dealt[sent.channel] += sent.element.rows["seq"].to_pylist()
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
    assert all(numbers == sorted(numbers) for numbers in dealt)
    assert sorted(chain.from_iterable(dealt)) == list(range(first))


def test_a_worker_that_joins_gets_its_share_of_the_rows_from_then_on():
    exchange, out = RebalanceExchange(range(2), 1), []
    exchange.push(rows([1] * 5), 0.0, out)
    exchange.attach(2, 2, out)
    for first in range(4):
        exchange.push(rows([1] * 3, first), 0.0, out)
    dealt = Counter[int]()
    for sent in out:
        dealt[sent.channel] += sent.element.num_rows
    assert [dealt[0] - 3, dealt[1] - 2, dealt[2]] == [4, 4, 4]


def test_watermark_is_sent_once_to_every_worker():
    exchange = hashed(3)
    exchange.watermark = 7
    assert exchange.waits
    assert flushed(exchange) == [Sent(channel, Watermark(7)) for channel in range(3)]
    assert not exchange.waits
    assert flushed(exchange) == []


def test_latency_marks_go_to_the_channels_in_turn():
    exchange = hashed(2)
    for created in range(4):
        exchange.mark(LatencyMark(created), [])
    assert [sent.channel for sent in flushed(exchange)] == [0, 0, 1, 1]


def test_signal_is_behind_everything_that_waited():
    exchange, out = hashed(2), []
    exchange.push(rows([1, 2, 3, 4]), 0.0, out)
    exchange.watermark = 7
    exchange.broadcast(Barrier(1), out)
    for channel in range(2):
        kinds = [type(sent.element).__name__ for sent in out if sent.channel == channel]
        assert kinds[-2:] == ["Watermark", "Barrier"]
        assert set(kinds[:-2]) <= {"Batch"}


def test_oldest_waiting_row_counts_for_linger():
    exchange = hashed(1)
    assert exchange.waiting_since is None
    exchange.push(rows([1]), 3.0, [])
    exchange.push(rows([1]), 4.0, [])
    assert exchange.waiting_since == 3.0


def test_columns_are_sent_once_and_again_when_a_type_widens():
    exchange, out = HashExchange(range(2), 1, "step", ("k",), even_table(GROUPS, 2), tells_columns=True), []
    for kind in ("int32", "int64", "int32", "int64", "float64", "int64"):
        exchange.push(Batch(pa.record_batch({"k": ["a"], "n": pa.array([1], kind)})), 0.0, out)
    out += flushed(exchange)
    told = [[sent.element.rows.schema.field("n").type for sent in out if sent.channel == n and not sent.element.num_rows] for n in range(2)]
    quiet = next(kinds for n, kinds in enumerate(told) if not any(sent.channel == n and sent.element.num_rows for sent in out))
    assert quiet == [pa.int32(), pa.int64(), pa.float64()]
