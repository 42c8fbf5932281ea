"""The rows of a table go where a deletion is seen, and everything else refuses them when the flow is written."""

from __future__ import annotations

from typing import Any

import pytest

import evenflow as ef
from evenflow.engine.table_changes import DELETED, OFFSET, PARTITION

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


def table(name: str = "orders", key: str = "id") -> ef.Stream:
    changes = [(1, "a", False), (2, "b", False), (1, "b", False), (2, None, True)]
    rows = [{key: own, "city": city, DELETED: gone, PARTITION: 0, OFFSET: at} for at, (own, city, gone) in enumerate(changes)]
    source = ef.from_items(rows)
    source.name, source.table_key = name, (key,)
    return ef.Dataflow("f").read(source)


def rows_of(stream: ef.Stream) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    stream.write(ef.to_list(rows))
    stream.flow.run(runtime="local").wait("60s")
    return rows


def test_aggregates_count_the_rows_that_remain():
    assert rows_of(table().key_by("city").aggregate(n=ef.count(), emit="final")) == [{"city": "b", "n": 1}]


def test_functions_of_rows_pass_on_which_rows_are_gone():
    stream = table().filter(ef.col("city") == "b").map(lambda row: {**row, "town": row["city"]}).rename(town="place")
    assert rows_of(stream.key_by("place").aggregate(n=ef.count(), ids=ef.sum("id"), emit="final")) == [{"place": "b", "n": 1, "ids": 1}]


@pytest.mark.parametrize(
    "narrow", [lambda rows: rows.select("city"), lambda rows: rows.drop("id"), lambda rows: rows.select(city=ef.col("city"))]
)
def test_rows_with_fewer_columns_are_still_taken_back(narrow):
    assert rows_of(narrow(table()).key_by("city").aggregate(n=ef.count(), emit="final")) == [{"city": "b", "n": 1}]


def test_plan_shows_the_kind_of_the_stream_and_its_operators():
    stream = table()
    stream.changelog().write(ef.to_list([]))
    lines = [" ".join(line.split()) for line in stream.flow.explain().splitlines()]
    assert "orders.table <- orders.newest by weight updates of id rows of id that are not deleted" in lines
    assert "changelog <- orders.table by weight append-only insert or delete in op" in lines


@pytest.mark.parametrize(
    "use",
    [
        lambda rows: rows.write(ef.to_list([])),
        lambda rows: rows.write(ef.write_sql("sqlite:////tmp/shop.db", "orders", mode="upsert", key="id", version="n")),
        lambda rows: rows.write(ef.write_kafka("orders", bootstrap="localhost:9092", key="id")),
        lambda rows: rows.map(lambda row: row).write(ef.to_list([])),
        lambda rows: rows.map(lambda row: row, on_error="skip"),
        lambda rows: rows.map_batches(lambda batch: batch),
        lambda rows: rows.key_by("id").stateful_map(lambda state, row: (state, row)),
        lambda rows: rows.key_by("id").deduplicate(),
        lambda rows: rows.key_by("id").window(ef.tumbling("1m")).aggregate(n=ef.count()),
        lambda rows: rows.key_by("id").join(rows.key_by("id"), ef.always()),
        lambda rows: rows.key_by("city").aggregate(cities=ef.collect("id")),
    ],
)
def test_operators_and_sinks_that_would_not_see_a_deletion_are_refused(use):
    with pytest.raises(ef.FlowError, match=r"can't take the changes of a table.*it would not see which rows are replaced or deleted"):
        use(table())


def test_sink_with_another_key_is_refused():
    with pytest.raises(ef.FlowError, match="its rows are updates by id, and key= has city"):
        table().write(ef.write_kafka("orders", bootstrap="localhost:9092", mode="upsert", key="city"))


def test_table_without_dead_letters_names_its_source():
    with pytest.raises(ef.FlowError, match="operator `orders` has no dead letters"):
        _ = table().dead_letters
