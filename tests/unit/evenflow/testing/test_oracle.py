"""The oracle against results that were worked out by hand."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import evenflow as ef
from evenflow.testing.oracle.oracle import oracle

ROWS = [
    {"k": "a", "v": 1, "ts": 1_000},
    {"k": "b", "v": None, "ts": 1_500},
    {"k": "a", "v": 5, "ts": 2_500},
    {"k": None, "v": 2, "ts": 500},
]


def result(write, rows=ROWS):
    flow = ef.Dataflow("f")
    write(flow.read(ef.from_items(rows, event_time="ts", max_delay="10s"))).write(ef.to_list([], name="out"))
    return oracle(flow)["out"]


def second(n):
    return datetime(1970, 1, 1, 0, 0, n, tzinfo=UTC)


def test_rows_pass_operators_without_state_one_by_one():
    found = result(
        lambda s: (
            s.filter(lambda row: row["v"] is not None)
            .filter(ef.col("v") < 5)
            .map(lambda row: {"k": row["k"], "v": row["v"] * 2})
            .flat_map(lambda row: [row, row])
            .map_batches(lambda batch: batch.append_column("w", pc.add(batch["v"], 1)))
            .rename(w="z")
            .drop("k")
        )
    )
    assert found == [{"v": 2, "z": 3}, {"v": 2, "z": 3}, {"v": 4, "z": 5}, {"v": 4, "z": 5}]


def test_windows_are_counted_by_key():
    found = result(lambda s: s.key_by("k").window(ef.sliding("2s", every="1s")).aggregate(n=ef.count(), v=ef.sum("v")))
    assert {(row["k"], row["window_start"], row["window_end"], row["n"], row["v"]) for row in found} == {
        (None, second(0), second(2), 1, 2), (None, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), second(1), 1, 2),
        ("a", second(0), second(2), 1, 1), ("a", second(1), second(3), 2, 6), ("a", second(2), second(4), 1, 5),
        ("b", second(0), second(2), 1, None), ("b", second(1), second(3), 1, None),
    }  # fmt: skip


def test_finals_are_one_row_per_key():
    found = result(
        lambda s: s.key_by("k").aggregate(
            emit="final", n=ef.count(), known=ef.count("v"), total=ef.sum("v"), mean=ef.mean("v"), low=ef.min("v"), high=ef.max("v"),
            first=ef.first("v"), last=ef.last("v"), distinct=ef.approx_distinct("v"),
        )
    )  # fmt: skip
    assert found == [
        {"k": "a", "n": 2, "known": 2, "total": 6, "mean": 3.0, "low": 1, "high": 5, "first": 1, "last": 5, "distinct": 2},
        {"k": "b", "n": 1, "known": 0, "total": None, "mean": None, "low": None, "high": None, "first": None, "last": None, "distinct": 0},
        {"k": None, "n": 1, "known": 1, "total": 2, "mean": 2.0, "low": 2, "high": 2, "first": 2, "last": 2, "distinct": 1},
    ]


def test_updates_come_row_by_row():
    assert result(lambda s: s.key_by("k").aggregate(n=ef.count())) == [
        {"k": "a", "n": 1}, {"k": "b", "n": 1}, {"k": "a", "n": 2}, {"k": None, "n": 1},
    ]  # fmt: skip


def test_state_is_kept_by_key_and_forgotten_with_none():
    def last_seen(state, row):
        return (None if row["v"] == 5 else row["ts"]), {"k": row["k"], "before": state}

    rows = [*ROWS, {"k": "a", "v": 6, "ts": 4_000}]
    assert [row["before"] for row in result(lambda s: s.key_by("k").stateful_map(last_seen), rows)] == [None, None, 1_000, None, None]


def test_state_in_columns_is_kept_by_key():
    def counting(state, rows):
        n = rows.running_count(state["n"])
        return {"n": rows.last(n)}, {"ts": rows["ts"], "n": n}

    found = result(lambda s: s.key_by("k").stateful_map_columns(counting, state={"n": "int64"}))
    assert [row["n"] for row in found] == [1, 1, 2, 1]


def test_several_sinks_get_each_their_own():
    flow = ef.Dataflow("f")
    numbers = flow.read(ef.from_items([1, 2]))
    numbers.write(ef.to_list([], name="all"))
    numbers.union(numbers).write(ef.to_list([], name="twice"))
    numbers.key_by(lambda row: row["item"] % 2, column="odd").stateful_map(lambda state, row: (1, row)).write(ef.to_list([], name="keyed"))
    assert oracle(flow) == {
        "all": [{"item": 1}, {"item": 2}],
        "twice": [{"item": 1}, {"item": 2}, {"item": 1}, {"item": 2}],
        "keyed": [{"item": 1, "odd": 1}, {"item": 2, "odd": 0}],
    }


def test_function_that_changes_its_row_does_not_change_another_branch():
    flow = ef.Dataflow("f")
    numbers = flow.read(ef.from_items([{"n": 1}]))
    numbers.map(lambda row: row.update(n=2) or row).write(ef.to_list([], name="changed"))
    numbers.write(ef.to_list([], name="kept"))
    assert oracle(flow) == {"changed": [{"n": 2}], "kept": [{"n": 1}]}


def test_columns_keep_the_types_of_the_source():
    flow = ef.Dataflow("f")
    types = []
    rows = flow.read(ef.from_items([{"n": None}, {"n": 1.5}]))
    rows.map_batches(lambda batch: types.append(batch.schema.field("n").type) or batch).write(ef.to_list([]))
    oracle(flow)
    assert types == [pa.float64()]


def test_updates_that_go_on_are_refused():
    with pytest.raises(ef.FlowError, match="operator `map` reads the updates of `aggregate`"):
        result(lambda s: s.key_by("k").aggregate(n=ef.count()).map(lambda row: row))


def test_source_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(sys.modules[oracle.__module__], "MAX_ROWS", 10_000)  # enough to tell
    flow = ef.Dataflow("f")
    flow.read(ef.generate()).write(ef.to_list([]))
    with pytest.raises(ef.FlowError, match="source `generate` does not end"):
        oracle(flow)


def test_flow_that_can_not_run_is_refused():
    with pytest.raises(ef.FlowError, match="is empty"):
        oracle(ef.Dataflow("f"))


def test_windows_without_event_time_are_refused():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").window(ef.tumbling(1)).aggregate(n=ef.count()).write(ef.to_list([]))
    with pytest.raises(ef.FlowError, match="windows need event time"):
        oracle(flow)
