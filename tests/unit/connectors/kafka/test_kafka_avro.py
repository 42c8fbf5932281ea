"""Avro messages through a broker, with and without a schema registry."""

from __future__ import annotations

import io
import json
import time
from decimal import Decimal
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from kafka_broker import fill, make_topic
from patience import patience
from schema_registry import schema_registry

import evenflow as ef
from evenflow.bench.kafka.topics import records_of
from evenflow.connectors.avro.registry import header_of

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

CLICK = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "user", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
    ],
}
OLD = {**CLICK, "fields": CLICK["fields"][1:]}
NEW = {**CLICK, "fields": [*CLICK["fields"], {"name": "more", "type": "string"}]}


@pytest.fixture
def registry():
    with schema_registry() as found:
        yield found


def datum(schema: Any, row: Any) -> bytes:
    """Encode a row with fastavro; times are numbers."""
    file = io.BytesIO()
    schemaless_writer(file, parse_schema(schema), row)
    return file.getvalue()


def click(number: int) -> dict[str, Any]:
    return {"user": f"u{number}" if number % 3 else None, "at": 1_000 * number, "price": Decimal(number) / 4, "tags": {"x": [number]}}


def read(bootstrap: str, topics: Any, **more: Any) -> list[dict[str, Any]]:
    flow, rows = ef.Dataflow("f"), list[dict[str, Any]]()
    flow.read(ef.read_kafka(topics, bootstrap=bootstrap, until="now", format="avro", **more)).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    return rows


def write(bootstrap: str, topic: str, rows: list[dict[str, Any]], **more: Any) -> None:
    flow = ef.Dataflow("w")
    flow.read(ef.from_items(rows)).write(ef.write_kafka(topic, bootstrap=bootstrap, format="avro", **more))
    flow.run(runtime="local").wait("60s")


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(int(row["price"] * 4) for row in rows)


def test_values_of_one_schema(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, datum(CLICK, click(number))) for number in range(20)]})
    rows = read(bootstrap, topic, schema=json.dumps(CLICK), event_time="at")
    assert numbers(rows) == [*range(20)]
    assert rows[5]["at"].timestamp() == 5
    assert rows[5]["user"] == "u5"
    assert rows[3]["user"] is None
    assert list(rows[7]["tags"]) == [("x", [7])]


def test_messages_of_several_schemas_are_read_into_the_newest_of_the_subject(bootstrap, registry):
    topic = make_topic(bootstrap, partitions=2)
    old, new, now = (registry.add(f"{topic}-value", schema) for schema in (OLD, NEW, CLICK))
    values = [header_of(old) + datum(OLD, click(0)), header_of(new) + datum(NEW, {**click(1), "more": "?"})]
    fill(bootstrap, topic, {0: [(None, value) for value in values], 1: [(None, header_of(now) + datum(CLICK, click(2)))]})
    rows = read(bootstrap, topic, registry=registry.url, columns=["offset"])
    assert numbers(rows) == [0, 1, 2]
    assert {tuple(row) for row in rows} == {("user", "at", "price", "tags", "offset")}
    assert {row["user"] for row in rows} == {None, "u1", "u2"}


@pytest.mark.slow
def test_two_topics_with_schemas_of_their_own(bootstrap, registry):
    topics = [make_topic(bootstrap), make_topic(bootstrap)]
    for topic, schema in zip(topics, (CLICK, {**CLICK, "doc": "the same columns"}), strict=True):
        number = registry.add(f"{topic}-value", schema)
        fill(bootstrap, topic, {0: [(None, header_of(number) + datum(schema, click(1)))]})
    assert numbers(read(bootstrap, topics, registry=registry.url)) == [1, 1]
    registry.add(f"{topics[1]}-value", NEW)
    with pytest.raises(ef.ConnectorError, match="have different columns; give those to read in schema="):
        read(bootstrap, topics, registry=registry.url)
    assert numbers(read(bootstrap, topics, registry=registry.url, schema=CLICK)) == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("bad", [b"", b"\0\0\0\0\1\2", b"\0\0\0\0\x63\2", b"{}"], ids=["empty", "cut short", "unknown schema", "json"])
def test_poison_records_stop_the_job_or_are_skipped_or_become_dead_letters(bootstrap, registry, bad):
    topic = make_topic(bootstrap)
    good = header_of(registry.add(f"{topic}-value", CLICK))
    records = [(None, good + datum(CLICK, click(number))) for number in range(4)]
    fill(bootstrap, topic, {0: [*records[:2], (b"k", bad), *records[2:]]})

    with pytest.raises(ef.RecordError, match=r"a record can't be decoded: .*\(partition 0 of topic `.*`, offset 2\)"):
        read(bootstrap, topic, registry=registry.url)
    assert numbers(read(bootstrap, topic, registry=registry.url, on_error="skip")) == [0, 1, 2, 3]

    flow, rows, letters = ef.Dataflow("f"), list[dict[str, Any]](), list[dict[str, Any]]()
    source = ef.read_kafka(topic, bootstrap=bootstrap, until="now", format="avro", registry=registry.url, on_error="dead_letter")
    flow.read(source).write(ef.to_list(rows)).dead_letters.write(ef.to_list(letters, name="letters"))
    flow.run(runtime="local").wait("60s")
    assert numbers(rows) == [0, 1, 2, 3]
    [letter] = [json.loads(letter["record"]) for letter in letters]
    assert (letter["offset"], letter["key"], letter["value"]) == (2, b"k".hex(), bad.hex())


@pytest.mark.slow
def test_registry_that_is_gone_when_the_job_starts_and_while_it_runs(bootstrap):
    topic = make_topic(bootstrap)
    with schema_registry() as registry:
        url, number = registry.url, registry.add(f"{topic}-value", CLICK)
    fill(bootstrap, topic, {0: [(None, header_of(number) + datum(CLICK, click(1)))]})
    begun = time.monotonic()
    for more in ({}, {"schema": CLICK}, {"schema": CLICK, "on_error": "skip"}):
        with pytest.raises(ef.EvenflowError, match=rf"the schema registry {url} doesn't answer: .*; check the address"):
            read(bootstrap, topic, registry=url, **more)
    assert time.monotonic() < begun + patience(60)


def test_rows_are_written_with_a_schema(bootstrap):
    topic = make_topic(bootstrap)
    rows = [{**click(number), "tags": {"x": [number]}} for number in range(1, 9)]
    simple = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}, {"name": "who", "type": ["null", "string"]}]}
    write(bootstrap, topic, [{"n": n, "who": row["user"]} for n, row in enumerate(rows)], schema=simple, key="who")
    found = records_of(bootstrap, topic)[0]
    assert [schemaless_reader(io.BytesIO(value), parse_schema(simple), None) for _, value in found] == [
        {"n": n, "who": row["user"]} for n, row in enumerate(rows)
    ]
    assert [key for key, _ in found] == [None if row["user"] is None else row["user"].encode() for row in rows]
    assert read(bootstrap, topic, schema=simple) == [{"n": n, "who": row["user"]} for n, row in enumerate(rows)]


@pytest.mark.few(1)
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_rows_are_written_with_the_number_that_the_registry_gave_their_schema(bootstrap, registry, guarantee):
    topic = make_topic(bootstrap)
    registry.add("other", '"int"')
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    write(bootstrap, topic, [{"n": 1}], schema=schema, registry=registry.url, guarantee=guarantee)
    write(bootstrap, topic, [{"n": 2}], registry=registry.url, guarantee=guarantee)
    assert registry.subjects[f"{topic}-value"] == [2]
    assert [value[:5] for _, value in records_of(bootstrap, topic)[0]] == [header_of(2)] * 2
    assert read(bootstrap, topic, registry=registry.url) == [{"n": 1}, {"n": 2}]


def test_schemas_that_a_sink_can_not_use_are_refused(bootstrap, registry):
    topic = make_topic(bootstrap)
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    with pytest.raises(ef.ConnectorError, match="has no subject"):
        write(bootstrap, topic, [{"n": 1}], registry=registry.url)
    registry.refused.add(f"{topic}-value")
    with pytest.raises(ef.ConnectorError, match="refuses the schema"):
        write(bootstrap, topic, [{"n": 1}], registry=registry.url, schema=schema)
    with pytest.raises(ef.RecordError, match=r"not in range.*change schema="):
        write(bootstrap, topic, [{"n": 2**40}], schema=schema)
    with pytest.raises(ef.EvenflowError, match="column `m` isn't in the schema, which has n"):
        write(bootstrap, topic, [{"n": 1, "m": 1}], schema=schema)
    assert records_of(bootstrap, topic)[0] == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"format": "avro"}, 'format="avro" needs schema='),
        ({"format": "json", "registry": "http://a"}, 'for format="avro"'),
        ({"format": "avro", "registry": "a:8081"}, "registry must be the address"),
    ],
)
def test_wrong_arguments_are_refused(arguments, problem):
    with pytest.raises(ef.FlowError, match=problem):
        ef.read_kafka("t", bootstrap="b:1", **arguments)
    with pytest.raises(ef.FlowError, match=problem):
        ef.write_kafka("t", bootstrap="b:1", **arguments)
    with pytest.raises(ef.FlowError, match="expected an Arrow schema"):
        ef.read_kafka("t", bootstrap="b:1", schema='{"type": "int"}')


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    for make in (ef.read_kafka, ef.write_kafka):
        with pytest.raises(ef.FlowError, match=r"pip install 'evenflow\[kafka\]'"):
            make("t", bootstrap="b:1", format="avro", schema='"int"')
