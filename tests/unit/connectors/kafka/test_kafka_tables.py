"""A topic with the changes of a table, read from a broker: aggregates, changelogs and tables have the rows that remain."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from typing import Any

import pytest
from kafka_broker import fill, make_topic

import evenflow as ef
from evenflow.bench.kafka.topics import records_of

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

Row = dict[str, Any]
SCHEMA = {"id": "int64", "city": "string", "cents": "int64"}


def change(op: str, number: int, after: Row | None) -> tuple[bytes, bytes]:
    return json.dumps({"id": number}).encode(), json.dumps({"before": None, "after": after, "op": op, "ts_ms": 1}).encode()


def changes(seed: int, partitions: int, events: int) -> tuple[dict[int, list[Any]], dict[int, Row]]:
    """Return records by partition, with repeats and tombstones, and the rows that remain."""
    chance, rows = random.Random(seed), dict[int, Row]()
    logs: dict[int, list[Any]] = {number: [] for number in range(partitions)}
    for _ in range(events):
        number = chance.randrange(30)
        log = logs[number % partitions]
        if log and chance.random() < 0.05:
            log += log[-8:]
        if number in rows and chance.random() < 0.4:
            del rows[number]
            log += [change("d", number, None), (json.dumps({"id": number}).encode(), None)]
        else:
            row = {"id": number, "city": chance.choice("abcd"), "cents": chance.choice((None, *range(9)))}
            log.append(change("u" if number in rows else "c", number, row))
            rows[number] = row
    return logs, rows


def table(bootstrap: str, topic: str, **more: Any) -> ef.Stream:
    options = {"until": "now", "schema": SCHEMA, "key": "id", **more}
    return ef.Dataflow("f").read(ef.read_kafka(topic, bootstrap=bootstrap, format="debezium", **options))


def by_city(rows: dict[int, Row]) -> list[Row]:
    cities: dict[str, list[Row]] = {}
    for row in rows.values():
        cities.setdefault(row["city"], []).append(row)
    return [{"city": city, "n": len(of), "cents": sum(row["cents"] or 0 for row in of)} for city, of in sorted(cities.items())]


def settings(folder: Any) -> ef.JobConfig:
    return ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder), interval="20ms"), network=ef.NetworkConfig(source_rows=16))


@pytest.mark.slow
def test_aggregates_tables_and_topics_have_the_rows_that_remain(bootstrap, tmp_path):
    topic, compacted, file = make_topic(bootstrap, 3), make_topic(bootstrap, 2), tmp_path / "shop.db"
    logs, rows = changes(3, 3, 300)
    fill(bootstrap, topic, logs)
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT, cents INTEGER)")
    counted: list[Row] = []

    stream = table(bootstrap, topic)
    cities = stream.key_by("city").aggregate(n=ef.count(), cents=ef.sum(ef.col("cents").fill_null(0)), emit="final")
    cities.write(ef.to_list(counted))
    stream.write(ef.write_sql(f"sqlite:///{file}", "customers", mode="upsert", key="id"))
    stream.write(ef.write_kafka(compacted, bootstrap=bootstrap, mode="upsert", key="id"))
    stream.flow.run(runtime="local", parallelism=2, config=settings(tmp_path / "state")).wait("100s")

    assert sorted(counted, key=lambda row: row["city"]) == by_city(rows)
    with sqlite3.connect(file) as database:
        found = database.execute("SELECT id, city, cents FROM customers").fetchall()
    assert sorted(found) == sorted(tuple(row.values()) for row in rows.values())
    newest = {key: value for records in records_of(bootstrap, compacted).values() for key, value in records}
    assert sorted(json.loads(value)["id"] for value in newest.values() if value is not None) == sorted(rows)


@pytest.mark.slow
def test_inserts_of_the_changelog_minus_its_deletes_are_the_rows_that_remain(bootstrap):
    topic = make_topic(bootstrap)
    log: list[Row] = []
    logs, rows = changes(5, 1, 60)
    fill(bootstrap, topic, logs)
    stream = table(bootstrap, topic)
    stream.changelog().write(ef.to_list(log))
    stream.flow.run(runtime="local", config=ef.JobConfig(network=ef.NetworkConfig(source_rows=7))).wait("60s")
    present: Counter[tuple[Any, ...]] = Counter()
    for *row, op in (tuple(change.values()) for change in log):
        present[tuple(row)] += 1 if op == "insert" else -1
    assert +present == Counter(tuple(row.values()) for row in rows.values())
    assert min(present.values()) >= 0


def test_refused_events_are_dead_letters_with_key_and_value(bootstrap):
    topic = make_topic(bootstrap)
    rows: list[Row] = []
    letters: list[Row] = []
    fill(bootstrap, topic, {0: [change("c", 1, {"id": 1, "city": "a"}), change("x", 2, None)]})
    stream = table(bootstrap, topic, on_error="dead_letter")
    stream.changelog().write(ef.to_list(rows))
    stream.dead_letters.write(ef.to_list(letters, name="letters"))
    stream.flow.run(runtime="local").wait("60s")
    assert [row["id"] for row in rows] == [1]
    assert "op='x'" in letters[0]["message"]
    record = json.loads(letters[0]["record"])
    assert (record["offset"], record["partition"]) == (1, 0)
    assert bytes.fromhex(record["key"]) == b'{"id": 2}'


def test_row_whose_changes_are_in_two_partitions_stops_the_job(bootstrap):
    topic = make_topic(bootstrap, 2)
    fill(bootstrap, topic, {0: [change("c", 1, {"id": 1})], 1: [change("u", 1, {"id": 1})]})
    stream = table(bootstrap, topic)
    stream.changelog().write(ef.to_list([]))
    with pytest.raises(ef.RecordError, match="in two partitions, 0 and 1"):
        stream.flow.run(runtime="local").wait("60s")
