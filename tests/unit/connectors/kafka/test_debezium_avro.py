"""Debezium's change events in Avro, as Confluent's converter writes them with a schema registry, become rows of the table and deletions."""

from __future__ import annotations

import json
import pickle
import re
import sqlite3
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from avro_events import KEY, TableEvents, connect, envelope, field, optional
from kafka_broker import fill, make_topic
from schema_registry import schema_registry

import evenflow as ef
from evenflow.connectors.avro.registry import SchemaRegistry, header_of
from evenflow.connectors.kafka.values.debezium import DebeziumValues
from evenflow.connectors.kafka.values.debezium_avro import AvroEvents
from evenflow.connectors.kafka.values.decoding import UndecodableError, decoded
from evenflow.sql_translation.script import flow_of

TOPIC = "shop.public.orders"


DECIMAL = connect("bytes", "org.apache.kafka.connect.data.Decimal", logicalType="decimal", precision=9, scale=2)
MICROS = connect("long", "io.debezium.time.MicroTimestamp")
MILLIS = connect("long", "io.debezium.time.Timestamp")
ZONED = connect("string", "io.debezium.time.ZonedTimestamp")
DATE = connect("int", "io.debezium.time.Date")
SMALL = {"type": "int", "connect.type": "int16"}


FIELDS = [field("id", "int"), optional("email", "string"), optional("price", DECIMAL), optional("seen", MICROS)]
NO_COLUMN = optional(
    "shape", {"type": "record", "name": "Point", "fields": [field("x", "double")], "connect.name": "io.debezium.data.geometry"}
)


COLUMNS = pa.schema({"id": pa.int64(), "email": pa.string(), "price": pa.decimal128(9, 2), "seen": pa.timestamp("us", "UTC")})


@pytest.fixture
def registry():
    with schema_registry() as found:
        yield found


@pytest.fixture
def producer(registry):
    return TableEvents(registry, TOPIC, FIELDS)


def values_of(registry: Any, columns: pa.Schema | None = COLUMNS) -> DebeziumValues:
    found = DebeziumValues(columns, ("id",), AvroEvents(SchemaRegistry(registry.url, "read"), TOPIC))
    values = found.inferred(lambda: pytest.fail("the registry has the columns"))
    assert isinstance(values, DebeziumValues)
    return values


def rows_of(values: DebeziumValues, *records: Any) -> list[dict[str, Any]]:
    return values.decode(records)[0].to_pylist()


def row(number: int, email: Any = None, price: Any = None, seen: Any = None, *, deleted: bool = False) -> dict[str, Any]:
    return {"id": number, "email": email, "price": price, "seen": seen, "__deleted": deleted}


def full(number: int, email: str | None = None, price: Decimal | None = None, seen: int | None = None) -> dict[str, Any]:
    return {"id": number, "email": email, "price": price, "seen": seen}


def test_created_read_and_updated_rows_are_there_and_deleted_ones_are_not(registry, producer):
    records = [
        (producer.key(1), producer.event("c", full(1, "a@x", Decimal("12.50"), 1_500_000))),
        (producer.key(2), producer.event("r", full(2))),
        (producer.key(1), producer.event("u", full(1, "b@x", Decimal("-0.01")), full(1, "a@x"))),
        (producer.key(2), producer.event("d", None, full(2))),
        (producer.key(2), None),
        (producer.key(3), producer.event("d")),
    ]
    seen = datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    assert rows_of(values_of(registry), *records) == [
        row(1, "a@x", Decimal("12.50"), seen), row(2), row(1, "b@x", Decimal("-0.01")), row(2, deleted=True), row(2, deleted=True),
        row(3, deleted=True),
    ]  # fmt: skip


def test_columns_come_from_the_newest_schema_of_the_topic(registry, producer):
    fields = [
        *FIELDS, optional("born", DATE), optional("paid", ZONED), optional("kept", MILLIS), optional("small", SMALL),
        optional("exact", connect("long", "io.debezium.time.NanoTimestamp")),
        optional("here", connect("long", "org.apache.kafka.connect.data.Timestamp", logicalType="timestamp-millis")),
        optional("there", {"type": "long", "logicalType": "timestamp-micros"}),
        optional("plan", connect("string", "io.debezium.data.Enum")),
    ]  # fmt: skip
    after = full(1) | {
        "born": 3, "paid": "2024-01-01T12:00:00.5Z", "kept": 2_000, "small": 7, "exact": 5, "here": 4_000, "there": 6, "plan": "free",
    }  # fmt: skip
    made = producer.event("c", after, fields=fields)
    values = values_of(registry, None)
    assert values.schema is not None
    assert {name: str(kind) for name, kind in zip(values.schema.names, values.schema.types, strict=True)} == {
        "id": "int32", "email": "string", "price": "decimal128(9, 2)", "seen": "timestamp[us]", "born": "date32[day]",
        "paid": "timestamp[us, tz=UTC]", "kept": "timestamp[ms]", "small": "int16", "exact": "timestamp[ns]", "here": "timestamp[ms]",
        "there": "timestamp[us, tz=UTC]", "plan": "string", "__deleted": "bool",
    }  # fmt: skip
    [found] = values.decode([(producer.key(1), made)])[0].select(["born", "paid", "kept", "small", "here", "plan"]).to_pylist()
    assert found == {
        "born": date(1970, 1, 4), "paid": datetime(2024, 1, 1, 12, 0, 0, 500_000, UTC), "kept": datetime(1970, 1, 1, 0, 0, 2),
        "small": 7, "here": datetime(1970, 1, 1, 0, 0, 4), "plan": "free",
    }  # fmt: skip


def test_events_of_older_and_newer_schemas_are_read_by_the_names_of_their_columns(registry, producer):
    old = producer.event("c", {"id": 1, "seen": 3_000}, fields=[FIELDS[0], optional("seen", MILLIS)])
    newer = producer.event("c", full(2, "b") | {"more": 1}, fields=[field("more", "int"), *FIELDS])
    now = producer.event("c", full(3, "c", seen=1), fields=FIELDS)
    values = values_of(registry)
    for order in ([old, newer, now, old], [now, old, newer]):
        found = rows_of(values, *((None, value) for value in order))
        assert [it["id"] for it in found] == [{old: 1, newer: 2, now: 3}[value] for value in order]
        assert {it["id"]: it["seen"] and it["seen"].timestamp() for it in found} == {1: 3, 2: None, 3: 1e-6}
    assert [call for call in registry.asked if "ids" in call] == [f"GET /schemas/ids/{number}" for number in (1, 2, 3)]


def test_columns_that_an_event_has_not_yet_get_the_default_of_the_newest_schema(registry, producer):
    old = producer.event("c", {"id": 1}, fields=FIELDS[:1])
    fields = [
        *FIELDS, field("plan", "string", default="free"), field("stars", ["int", "null"], default=3),
        field("owed", DECIMAL, default="\x01\x00"), field("code", "bytes", default="\x00\xff"), field("since", DATE, default=1),
    ]  # fmt: skip
    producer.event("c", full(1) | {"plan": "x", "stars": 1, "owed": Decimal(1), "code": b"", "since": 1}, fields=fields)
    [found] = rows_of(values_of(registry, None), (None, old))
    assert found == row(1) | {"plan": "free", "stars": 3, "owed": Decimal("2.56"), "code": b"\0\xff", "since": date(1970, 1, 2)}


def test_given_columns_convert_the_values_and_leave_out_columns_without_a_type(registry, producer):
    fields = [*FIELDS, NO_COLUMN, field("either", ["null", "int", "string"])]
    made = producer.event("c", full(1, "7.5", Decimal("1.25"), 2) | {"shape": {"x": 1.0}, "either": 1}, fields=fields)
    columns = pa.schema({"id": pa.string(), "email": pa.decimal128(5, 2), "price": pa.float64(), "seen": pa.int64()})
    assert rows_of(values_of(registry, columns), (None, made)) == [row("1", Decimal("7.50"), 1.25, 2)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([*FIELDS, NO_COLUMN], "column `shape` is struct<x: double>"),
        ([*FIELDS, field("either", ["null", "int", "string"])], "field `before.either` is a union of int, string"),
        (FIELDS[1:], "no column `id`, which is in key="),
        ([*FIELDS, field("__op", "int")], "column `__op`: names that begin with __ are taken"),
    ],
)
def test_newest_schema_that_makes_no_columns_is_refused(registry, producer, fields, problem):
    registry.add(f"{TOPIC}-value", envelope(fields))
    with pytest.raises((UndecodableError, ef.ConnectorError), match=problem):
        values_of(registry, None)


@pytest.mark.parametrize("schema", [KEY, "int"], ids=["record", "number"])
def test_newest_schema_without_the_envelope_is_refused(registry, schema):
    registry.add(f"{TOPIC}-value", schema if isinstance(schema, dict) else json.dumps(schema))
    with pytest.raises(UndecodableError, match=r'no change events of Debezium.*format="avro"'):
        values_of(registry, None)


BAD = {
    "truncated": (lambda made: (made.key(1), made.event("t")), "the table was truncated"),
    "message": (lambda made: (made.key(1), made.event("m")), "op='m' is none of"),
    "no after": (lambda made: (made.key(1), made.event("u")), "`after` is null"),
    "unsent": (lambda made: (made.key(1), made.event("u", full(1, "__debezium_unavailable_value"))), "REPLICA IDENTITY FULL"),
    "json": (lambda made: (made.key(1), b'{"op": "c"}'), "doesn't begin with a zero and the number of a schema"),
    "cut short": (lambda made: (made.key(1), made.event("c", full(1, "a@x"))[:-4]), "its schema didn't write it"),
    "too long": (lambda made: (made.key(1), made.event("c", full(1)) + b"1"), r"wrote \d+ of its \d+ bytes"),
    "unknown schema": (lambda made: (made.key(1), header_of(99) + b"1"), "has no schema 99"),
    "no envelope": (lambda made: (made.key(1), made.key(1)), "no change events of Debezium"),
    "struct": (
        lambda made: (made.key(1), made.event("c", full(1) | {"email": {"x": 1.0}}, fields=[FIELDS[0], NO_COLUMN | {"name": "email"}])),
        "column `email` is struct",
    ),
    "too wide": (
        lambda made: (
            made.key(1),
            made.event("c", {"id": 1, "price": Decimal(10**9)}, fields=[FIELDS[0], optional("price", {**DECIMAL, "precision": 14})]),
        ),
        "column `price`: .*schema=",
    ),
    "no primary key": (lambda made: (made.key(1), made.event("c", {"email": "a"}, fields=[FIELDS[1]])), "it has no `id`, which is in key="),
    "deletion without a key": (lambda made: (None, made.event("d")), "neither a key nor a `before`"),
    "tombstone without a key": (lambda made: (None, None), "neither a key nor a `before`"),
    "key in JSON": (lambda made: (b'{"id": 1}', None), "its key can't be decoded: it doesn't begin with a zero"),
    "another key": (
        lambda made: (header_of(made.registry.add("k", '"int"')) + b"\2", None),
        "its key can't be decoded: its schema is no record",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_event_that_is_no_change_of_a_row_is_refused_and_the_others_are_read(registry, producer, case):
    made, problem = BAD[case]
    refused: list[tuple[int, str]] = []
    good, tombstone = (producer.key(3), producer.event("c", full(3))), (producer.key(3), None)
    rows, counts = decoded(values_of(registry), [good, made(producer), tombstone], lambda *it: refused.append(it))
    assert rows.to_pylist() == [row(3), row(3, deleted=True)]
    assert counts is not None
    assert counts.tolist() == [1, 0, 1]
    assert refused[0][0] == 1
    assert re.search(problem, refused[0][1])


def test_bytes_that_postgresql_did_not_send_are_refused(registry, producer):
    columns = pa.schema({"id": pa.int64(), "photo": pa.binary()})
    made = producer.event("u", {"id": 1, "photo": b"__debezium_unavailable_value"}, fields=[FIELDS[0], field("photo", "bytes")])
    with pytest.raises(UndecodableError, match=r"`photo`.*REPLICA IDENTITY FULL"):
        values_of(registry, columns).decode([(None, made)])


def test_decoder_is_sent_to_workers_without_the_schemas_that_it_has_seen(registry, producer):
    values = values_of(registry)
    record = (producer.key(1), producer.event("d"))
    assert rows_of(values, record) == [row(1, deleted=True)]
    assert rows_of(pickle.loads(pickle.dumps(values)), record) == [row(1, deleted=True)]


PEOPLE = [field("id", "int"), optional("city", "string")]


def people(producer: TableEvents) -> list[tuple[bytes, bytes | None]]:
    """Return the changes of a table that ends with 2 in Oslo and 4 in Bern; the schema of some has a column more."""
    older, rome = [field("id", "int")], {"id": 2, "city": "Rome"}
    first = producer.event("r", {"id": 4}, fields=older)
    changes = [
        (1, producer.event("c", {"id": 1, "city": "Rome"})), (2, producer.event("c", rome)),
        (4, first), (3, producer.event("r", {"id": 3}, fields=older)),
        (2, producer.event("u", {"id": 2, "city": "Oslo"}, rome)),
        (4, producer.event("u", {"id": 4, "city": "Bern"}, {"id": 4, "city": None})),
        (3, producer.event("d")), (1, producer.event("d", None, {"id": 1, "city": None})), (1, None),
    ]  # fmt: skip
    return [(producer.key(number), value) for number, value in changes]


@pytest.mark.usefixtures("waiting_for_jobs")
@pytest.mark.few(1)
@pytest.mark.parametrize("sql", [False, True], ids=["python", "sql"])
def test_rows_of_a_table_are_counted_by_a_flow(bootstrap, registry, tmp_path, sql):
    topic, out = make_topic(bootstrap), tmp_path / "out"
    fill(bootstrap, topic, {0: people(TableEvents(registry, topic, PEOPLE))})
    if sql:
        text = f"""
        CREATE TABLE people (id BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
            'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
            'scan.bounded.mode' = 'latest-offset', 'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = '{registry.url}');
        CREATE TABLE cities (city STRING, n BIGINT, PRIMARY KEY (city) NOT ENFORCED) WITH (
            'connector' = 'jdbc', 'url' = 'jdbc:sqlite:///{tmp_path}/cities.db', 'table-name' = 'cities');
        SET 'table.exec.state.ttl' = '0';
        INSERT INTO cities SELECT city, COUNT(*) FROM people WHERE city IS NOT NULL GROUP BY city;
        """
        flow = flow_of(text, "people")
    else:
        flow = ef.Dataflow("people")
        table = flow.read(ef.read_kafka(topic, bootstrap=bootstrap, until="now", format="debezium", registry=registry.url, key="id"))
        cities = table.filter(ef.col("city").is_not_null()).key_by("city").aggregate(n=ef.count())
        cities.write(ef.write_sql(f"sqlite:///{tmp_path}/cities.db", "cities", mode="upsert", key="city"))
    with sqlite3.connect(tmp_path / "cities.db") as database:
        database.execute("CREATE TABLE cities (city TEXT PRIMARY KEY, n INTEGER)")
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(out), interval="1ms"), network=ef.NetworkConfig(source_rows=1))
    flow.run(runtime="local", config=config).wait("60s")
    with sqlite3.connect(tmp_path / "cities.db") as database:
        assert sorted(database.execute("SELECT city, n FROM cities").fetchall()) == [("Bern", 1), ("Oslo", 1)]
    database.close()


@pytest.mark.usefixtures("waiting_for_jobs")
def test_damaged_event_names_topic_partition_and_offset(bootstrap, registry):
    topic = make_topic(bootstrap)
    made = people(TableEvents(registry, topic, PEOPLE))
    fill(bootstrap, topic, {0: [*made[:2], (made[0][0], b"\0\0\0\0\x63\2"), *made[2:]]})
    flow = ef.Dataflow("people")
    table = flow.read(ef.read_kafka(topic, bootstrap=bootstrap, until="now", format="debezium", registry=registry.url, key="id"))
    table.changelog().write(ef.to_list([]))
    with pytest.raises(ef.RecordError, match=rf"has no schema 99.*\(partition 0 of topic `{topic}`, offset 2\)"):
        flow.run(runtime="local").wait("60s")


def test_sql_table_without_a_registry_or_a_primary_key_is_refused():
    def script(columns: str, more: str) -> str:
        return f"""
        CREATE TABLE people ({columns}) WITH ('connector' = 'kafka', 'topic' = 'p', 'properties.bootstrap.servers' = 'localhost:1',
            'format' = 'debezium-avro-confluent'{more});
        CREATE TABLE shown (id BIGINT) WITH ('connector' = 'print');
        INSERT INTO shown SELECT id FROM people;
        """

    with pytest.raises(ef.FlowError, match=r"needs the option 'debezium-avro-confluent\.url'"):
        flow_of(script("id BIGINT, PRIMARY KEY (id) NOT ENFORCED", ""), "people")
    with pytest.raises(ef.FlowError, match="table `people`: debezium-avro-confluent needs PRIMARY KEY"):
        flow_of(script("id BIGINT", ", 'debezium-avro-confluent.url' = 'http://localhost:1'"), "people")
