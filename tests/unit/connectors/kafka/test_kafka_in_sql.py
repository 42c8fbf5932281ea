"""A script of SQL reads a topic, and writes what is there now into a topic and into a database."""

from __future__ import annotations

import json
import sqlite3

import pyarrow.parquet as pq
import pytest
from kafka_broker import fill, make_topic

import evenflow as ef
from evenflow.bench.kafka.topics import records_of
from evenflow.sql_translation.script import flow_of

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

MOVES = [("ann", "Rome"), ("bob", "Rome"), ("ann", "Oslo"), ("bob", "Oslo"), ("ann", "Bern"), ("bob", "Rome")]


def script(bootstrap, moves, cities, database):
    return f"""
    SET 'table.exec.state.ttl' = '0';
    CREATE TABLE moves (person STRING, city STRING, at BIGINT) WITH (
        'connector' = 'kafka', 'topic' = '{moves}', 'properties.bootstrap.servers' = '{bootstrap}', 'format' = 'json',
        'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE cities (city STRING, n BIGINT, PRIMARY KEY (city) NOT ENFORCED) WITH (
        'connector' = 'upsert-kafka', 'topic' = '{cities}', 'properties.bootstrap.servers' = '{bootstrap}',
        'key.format' = 'raw', 'value.format' = 'json');
    CREATE TABLE saved (city STRING, n BIGINT, PRIMARY KEY (city) NOT ENFORCED)
        WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:///{database}', 'table-name' = 'cities');
    CREATE VIEW present AS SELECT person, city
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY person ORDER BY at DESC) AS r FROM moves) WHERE r = 1;
    INSERT INTO cities SELECT city, COUNT(*) FROM present GROUP BY city;
    INSERT INTO saved SELECT city, COUNT(*) FROM present GROUP BY city;
    """


PEOPLE = [
    ("c", None, {"id": 1, "city": "Rome"}), ("c", None, {"id": 2, "city": "Rome"}), ("r", None, {"id": 3, "city": "Oslo"}),
    ("c", None, {"id": 4, "city": "Bern"}),
    ("u", {"id": 2, "city": "Rome"}, {"id": 2, "city": "Oslo"}), ("d", {"id": 3, "city": "Oslo"}, None),
    ("d", {"id": 1, "city": "Rome"}, None),
]  # fmt: skip


def test_changes_of_a_table_are_counted_by_a_query_as_the_rows_that_remain(bootstrap, tmp_path):
    people, database = make_topic(bootstrap), tmp_path / "cities.db"
    events = [json.dumps({"before": before, "after": after, "op": op}).encode() for op, before, after in PEOPLE]
    keys = [json.dumps({"id": (after or before)["id"]}).encode() for _, before, after in PEOPLE]
    fill(bootstrap, people, {0: list(zip(keys, events, strict=True))})
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE cities (city TEXT PRIMARY KEY, n INTEGER)")
    connection.close()
    text = f"""
    SET 'table.exec.state.ttl' = '0';
    CREATE TABLE people (id BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
        'connector' = 'kafka', 'topic' = '{people}', 'properties.bootstrap.servers' = '{bootstrap}', 'format' = 'debezium-json',
        'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE saved (city STRING, n BIGINT, PRIMARY KEY (city) NOT ENFORCED)
        WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:///{database}', 'table-name' = 'cities');
    INSERT INTO saved SELECT city, COUNT(*) FROM people WHERE id <> 4 GROUP BY city;
    """
    checkpoint = ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="1ms")
    config = ef.JobConfig(checkpoint=checkpoint, network=ef.NetworkConfig(source_rows=1))
    flow_of(text, "people").run(runtime="local", config=config).wait("60s")
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT city, n FROM cities").fetchall() == [("Oslo", 1)]
    connection.close()


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "values"), [("STRING", ["a", "b"]), ("VARBINARY", [b"a", b"b"])])
def test_raw_values_are_texts_or_bytes(bootstrap, tmp_path, kind, values):
    lines = make_topic(bootstrap)
    fill(bootstrap, lines, {0: [(None, b"a"), (None, b"b")]})
    text = f"""
    CREATE TABLE lines (value {kind}) WITH (
        'connector' = 'kafka', 'topic' = '{lines}', 'properties.bootstrap.servers' = '{bootstrap}', 'format' = 'raw',
        'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE files (value {kind}) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'parquet');
    INSERT INTO files SELECT value FROM lines;
    """
    flow_of(text, "lines").run(runtime="local").wait("60s")
    assert pq.read_table(tmp_path / "out").to_pydict() == {"value": values}


def test_changes_of_a_table_without_a_primary_key_are_refused():
    text = """
    CREATE TABLE people (id BIGINT) WITH (
        'connector' = 'kafka', 'topic' = 'p', 'properties.bootstrap.servers' = 'localhost:1', 'format' = 'debezium-json');
    CREATE TABLE shown (id BIGINT) WITH ('connector' = 'print');
    INSERT INTO shown SELECT id FROM people;
    """
    with pytest.raises(ef.FlowError, match="table `people`: debezium-json needs PRIMARY KEY"):
        flow_of(text, "people")


@pytest.mark.slow
def test_groups_that_are_gone_leave_a_topic_and_a_table(bootstrap, tmp_path):
    moves, cities, database = make_topic(bootstrap), make_topic(bootstrap, partitions=2), tmp_path / "cities.db"
    rows = [json.dumps({"person": person, "city": city, "at": at}).encode() for at, (person, city) in enumerate(MOVES)]
    fill(bootstrap, moves, {0: [(None, row) for row in rows]})
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE cities (city TEXT PRIMARY KEY, n INTEGER)")
    connection.close()
    flow = flow_of(script(bootstrap, moves, cities, database), "cities")
    checkpoint = ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="1ms")
    flow.run(runtime="local", config=ef.JobConfig(checkpoint=checkpoint, network=ef.NetworkConfig(source_rows=1))).wait("60s")
    newest = {key: value for records in records_of(bootstrap, cities).values() for key, value in records}
    present = {key: json.loads(value) for key, value in newest.items() if value is not None}
    assert present == {b"Bern": {"city": "Bern", "n": 1}, b"Rome": {"city": "Rome", "n": 1}}
    with sqlite3.connect(database) as connection:
        assert sorted(connection.execute("SELECT city, n FROM cities")) == [("Bern", 1), ("Rome", 1)]
    connection.close()
