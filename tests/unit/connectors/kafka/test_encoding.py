from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from kafka_broker import make_topic

import evenflow as ef
from evenflow.bench.kafka.topics import records_of
from evenflow.connectors.kafka.cluster import KafkaCluster
from evenflow.connectors.kafka.values.encoding import ARROW_ROWS, Encoding
from evenflow.connectors.kafka.writing.sending import Sender
from evenflow.connectors.kafka.writing.writer import Messages
from evenflow.engine.batch import Batch


def messages(encoding, **columns):
    return encoding.messages(pa.record_batch(columns)).to_pydict()


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["a", None, ""]), [b"a", None, b""]),
        (pa.array(["a", None], pa.large_string()), [b"a", None]),
        (pa.array([b"\x00\xff", None]), [b"\x00\xff", None]),
        (pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (pa.array(["x", "x"]).dictionary_encode(), [b"x", b"x"]),
        (pa.array([-7, 2**63 - 1, None]), [b"-7", b"9223372036854775807", None]),
        (pa.array([True, False]), [b"true", b"false"]),
        (pa.array([Decimal("1.50")]), [b"1.50"]),
        (pa.array([date(2026, 1, 31)]), [b"2026-01-31"]),
        (pa.array([datetime(2026, 1, 31, 10, tzinfo=UTC)]), [b"2026-01-31T10:00:00.000000Z"]),
        (pa.nulls(2), [None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_column_as_a_key_and_as_a_header(column, expected):
    rows = pa.record_batch({"k": column, "value": pa.array([b"v"] * len(column))})
    found = Encoding("raw", key="k", headers={"h": "k"}).messages(rows).to_pydict()
    assert found == {"key": expected, "value": [b"v"] * len(column), "h": expected}


def test_several_columns_are_a_json_object():
    found = messages(Encoding("json", key=("b", "a")), a=[1, None], b=["x", 'y"'])
    assert found["key"] == [b'{"b":"x","a":1}', b'{"b":"y\\"","a":null}']


def test_json_is_that_of_write_json(tmp_path):
    rows = {"n": [1, None], "x": [0.5, 2.0], "s": ["ü\n", "%s"], "l": [[1], []]}
    sink = ef.write_json(tmp_path)
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch(rows)))
    sink.commit(1, writer.prepare(1))
    lines = next(tmp_path.glob("*.json")).read_bytes().splitlines()
    assert messages(Encoding("json"), **rows)["value"] == lines
    assert [json.loads(line) for line in lines] == [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]


def test_nan_has_no_json():
    with pytest.raises(ef.RecordError, match="column `x`"):
        messages(Encoding("json"), x=[1.0, float("nan")])


def test_null_is_a_tombstone():
    assert messages(Encoding("raw", key="k"), k=["a"], value=pa.array([None], pa.binary())) == {"key": [b"a"], "value": [None]}


def test_rows_of_the_format_arrow_are_those_of_its_messages():
    rows = pa.record_batch({"n": range(ARROW_ROWS + 1)})
    found = Encoding("arrow").messages(rows)
    tables = [pa.ipc.open_stream(value).read_all() for value in found["value"].to_pylist()]
    assert [table.num_rows for table in tables] == [ARROW_ROWS, 1]
    assert pa.concat_tables(tables).equals(pa.Table.from_batches([rows]))
    assert found["key"].null_count == 2


@pytest.mark.parametrize(
    ("encoding", "columns", "message"),
    [
        (Encoding("json", key="k"), {"n": [1]}, "no column `k` among n"),
        (Encoding("json", headers={"h": "k"}), {"n": [1]}, "no column `k` among n"),
        (Encoding("raw"), {"n": [1]}, 'no column `value` among n; format="raw" writes the column `value`'),
        (Encoding("raw"), {"value": [1]}, 'column `value` is int64; format="raw" needs binary or a string'),
        (Encoding("text"), {"value": [b"a"]}, 'column `value` is binary; format="text" needs a string'),
        (Encoding("json"), {"b": [b"a"]}, "column `b` is binary: JSON has no bytes"),
        (Encoding("json", key="x"), {"x": [0.5]}, "column `x` is double: a key or a header is"),
        (Encoding("json", headers={"h": "l"}), {"l": [[1]]}, "column `l` is list.*: a key or a header is"),
        (Encoding("raw", key=("b", "value")), {"b": [b"a"], "value": ["v"]}, "column `b` is binary: JSON has no bytes"),
    ],
)
def test_columns_that_can_not_be_written(encoding, columns, message):
    with pytest.raises(ef.ConnectorError, match=f"operator `write_kafka`: {message}"):
        messages(encoding, **columns)


def test_message_that_is_too_large_is_named_by_its_row():
    rows = Batch(pa.record_batch({"k": ["a", "b"], "value": [b"small", b"x" * 2_000]}))
    with pytest.raises(ef.RecordError, match=r"a message has 2,\d+ bytes, and topic and producer take 1,000; make it smaller") as raised:
        Messages(Encoding("raw", key="k"), 1_000).of(rows)
    assert raised.value.key == b"b"


def murmur2(data):
    """Hash as org.apache.kafka.common.utils.Utils does."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        h = h * m & mask ^ (k ^ k >> 24) * m & mask
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def test_keys_go_to_the_partitions_where_javas_client_puts_them(bootstrap):
    topic = make_topic(bootstrap, partitions=7)
    sender = Sender(KafkaCluster(bootstrap), topic, "murmur2", 1_000_000)
    keys = [b"key %d" % number for number in range(200)] + [b"a" * size for size in range(1, 20)]
    sender.send(pa.record_batch({"key": keys, "value": keys}))
    sender.flush()
    found = {key: partition for partition, records in records_of(bootstrap, topic).items() for key, _ in records}
    assert found == {key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in keys}
    assert murmur2(b"kafka") == 0xD067CF64


def test_headers_arrive_and_nulls_are_omitted(bootstrap):
    from confluent_kafka import Consumer, TopicPartition

    topic = make_topic(bootstrap)
    sender = Sender(KafkaCluster(bootstrap), topic, "murmur2", 1_000_000)
    sender.send(Encoding("raw", headers={"a": "x", "b": "y"}).messages(pa.record_batch({"value": [b"1"], "x": [7], "y": pa.nulls(1)})))
    sender.flush()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "headers", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    [message] = consumer.consume(1, 60)
    assert message.headers() == [("a", b"7")]
    consumer.close()
