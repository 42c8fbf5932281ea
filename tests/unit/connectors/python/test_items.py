from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from evenflow.connectors.python.items import from_items
from evenflow.engine.errors import ConnectorError, RecordError


def test_plain_values_become_rows_of_the_column_item():
    assert from_items(iter("ab")).reader(0, 1).poll(10).to_rows() == [{"item": "a"}, {"item": "b"}]


def test_a_key_that_a_dict_lacks_is_null():
    assert from_items([{"a": 1}, {"b": 2}]).reader(0, 1).poll(10).to_rows() == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_workers_take_items_in_turn():
    source = from_items(range(5))
    assert [source.reader(index, 2).poll(10).rows["item"].to_pylist() for index in range(2)] == [[0, 2, 4], [1, 3]]


def test_event_times_are_microseconds_of_the_column():
    batch = from_items([{"at": datetime(2026, 1, 1, tzinfo=UTC)}], event_time="at").reader(0, 1).poll(1)
    assert batch.times.tolist() == [1_767_225_600_000_000]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        pytest.param([1, 2, "three"], r"item 2, column `item`: 'three' is a str, but the values before it are int64", id="types of values"),
        pytest.param(
            [{"n": 1}, {"n": "x"}], r"item 1, column `n`: 'x' is a str, but the values before it are int64", id="types in a column"
        ),
        pytest.param([{"n": 1}, 2], r"item 1 is int, but item 0 is a dict", id="a value among dicts"),
        pytest.param([1, {"n": 2}], r"item 1 is dict, but item 0 is a plain value", id="a dict among values"),
        pytest.param([object()], r"item 0, column `item`: .* which has no Arrow type", id="no Arrow type"),
        pytest.param([1, 2**70], r"item 1, column `item`", id="too large an integer"),
        pytest.param([{1: 2}], r"item 0 has a key that is not a string", id="a key that is no string"),
        pytest.param([{}], r"item 0 has no columns", id="no columns"),
    ],
)
def test_an_item_that_does_not_fit_is_named(items, message):
    with pytest.raises(RecordError, match=message) as caught:
        from_items(items, name="words")
    assert "operator `words`" in str(caught.value)


def test_a_missing_event_time_column_is_found_at_the_start():
    with pytest.raises(ConnectorError, match=r"operator `from_items`: no event time column `ts`; there are: n"):
        from_items([{"n": 1}], event_time="ts").start()


def test_a_null_event_time_is_found_at_the_start():
    with pytest.raises(ConnectorError, match="`ts` is null in row"):
        from_items([{"ts": 1}, {"ts": None}], event_time="ts").start()


def test_the_source_can_be_sent_to_a_worker():
    source = pickle.loads(pickle.dumps(from_items([{"n": 1}])))
    assert source.reader(0, 1).poll(1).to_rows() == [{"n": 1}]
