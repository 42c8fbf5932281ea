"""Decoding of the values of Kafka records: formats, schemas, and metadata columns."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from kafka_broker import fill, make_topic
from kafka_jobs import minutes_ago, objects, read, running, stamp, until

import evenflow as ef
from evenflow.engine.needed import Needed

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


def test_raw_values_and_tombstones(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(b"k", b"\xff\n"), (None, None), (b"", b"")]})

    rows = read(bootstrap, topic, format="raw", columns=["key"])

    assert rows == [{"value": b"\xff\n", "key": b"k"}, {"value": None, "key": None}, {"value": b"", "key": b""}]


def test_text_values(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, "süß".encode()), (None, None)]})

    assert read(bootstrap, topic, format="text") == [{"value": "süß"}, {"value": None}]


def test_json_with_a_schema_drops_other_fields_and_has_nulls_for_missing_ones_and_tombstones(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, b'{"a": 1, "x": {}}'), (None, b"{}"), (None, None), (None, b' {\n "a":\n 4}\n')]})

    assert read(bootstrap, topic, schema={"a": "int64"}) == [{"a": 1}, {"a": None}, {"a": None}, {"a": 4}]


def test_json_without_a_schema_has_the_columns_of_the_first_records(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    fill(bootstrap, topic, {0: [(None, b'{"a": 1}')], 1: [(None, b'{"b": [1.5]}')]})

    rows = read(bootstrap, topic)

    assert sorted(rows, key=str) == [{"a": 1, "b": None}, {"a": None, "b": [1.5]}]


def test_json_without_a_schema_of_a_topic_whose_records_were_all_there_before(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(1)})
    rows: list[Any] = []

    with running(bootstrap, topic, rows, start="latest"):
        fill(bootstrap, topic, {0: objects(2)})
        until(lambda: rows == [{"n": 2, "ts": 2}])


def test_json_without_a_schema_of_an_empty_topic(bootstrap):
    with pytest.raises(ef.ConnectorError, match=r"the columns of .* aren't known: .*; give them in schema="):
        read(bootstrap, make_topic(bootstrap))


def test_arrow_values_have_any_number_of_rows(bootstrap):
    topic = make_topic(bootstrap)
    values = []
    for count in (2, 0, 3):
        table, sink = pa.table({"n": pa.array(range(count), pa.int64())}), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        values.append((None, sink.getvalue().to_pybytes()))
    fill(bootstrap, topic, {0: [*values, (None, None)]})

    rows = read(bootstrap, topic, format="arrow", columns=["offset"])

    assert [(row["offset"], row["n"]) for row in rows] == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]


def test_columns_of_keys_offsets_and_headers_are_added_to_the_values(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    time = minutes_ago(5) + timedelta(milliseconds=1_500)
    fill(bootstrap, topic, {1: [(b"k", b"v")]}, headers=[("a", b"1"), ("a", None)], timestamp=stamp(time))

    rows = read(bootstrap, topic, format="raw", columns=["key", "topic", "partition", "offset", "timestamp", "headers"])

    assert rows == [
        {
            "value": b"v",
            "key": b"k",
            "topic": topic,
            "partition": 1,
            "offset": 0,
            "timestamp": time,
            "headers": [{"name": "a", "value": b"1"}, {"name": "a", "value": None}],
        }
    ]


def test_added_columns_with_the_name_of_a_value_are_refused(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, b'{"key": 1}')]})

    with pytest.raises(ef.FlowError, match=r"the values both have `key`; remove it from columns"):
        read(bootstrap, topic, columns=["key"])


@pytest.mark.parametrize("form", ["raw", "text"])
def test_only_columns_that_the_flow_needs_are_made(bootstrap, form):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(b"a", b"x"), (b"b", b"\xff"), (None, None)]}, headers=[("h", b"1")])
    options: dict[str, Any] = {"bootstrap": bootstrap, "format": form, "columns": ["key", "offset", "headers"], "until": "now"}
    flow, rows = ef.Dataflow("f"), list[dict[str, Any]]()
    flow.read(ef.read_kafka(topic, **options)).select("offset", "key").write(ef.to_list(rows))
    assert f"topics {topic}, reads key, offset" in str(flow.explain())
    flow.run(runtime="local").wait("60s")
    assert rows == [{"offset": 0, "key": b"a"}, {"offset": 1, "key": b"b"}, {"offset": 2, "key": None}]

    source = ef.read_kafka(topic, **options).reading(Needed(frozenset({"offset"})))
    source.start()
    assert [*source.known_columns().types] == ["offset"]
    reader, batches = source.reader(0, 1), list[Any]()
    until(lambda: bool(batches.append(reader.poll(9)) or batches[-1]))
    assert batches[-1].rows.schema.names == ["offset"]
    reader.close()


def test_fields_that_the_flow_does_not_need_are_not_looked_at(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, b'{"a": 1, "b": "no number", "ts": 5}'), (None, None)]})
    flow, rows = ef.Dataflow("f"), list[dict[str, Any]]()
    source = ef.read_kafka(topic, bootstrap=bootstrap, schema={"a": "int64", "b": "int64", "ts": "int64"}, until="now")
    flow.read(source).select("a").write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert rows == [{"a": 1}, {"a": None}]
