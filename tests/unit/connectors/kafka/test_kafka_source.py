"""The Kafka source over a broker, in jobs of this process."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_broker import fill, make_topic

import evenflow as ef
from evenflow.bench.kafka.broker import free_port, own_broker
from evenflow.bench.kafka.topics import add_partitions
from evenflow.engine.needed import Needed
from evenflow.job import Job

SLEEP = time.sleep


@pytest.fixture(autouse=True)
def the_handle_may_poll(no_waiting_and_no_cluster, monkeypatch):
    """A job's handle asks for news 20 times a second: it is it that sleeps, not the test."""
    monkeypatch.setattr(time, "sleep", SLEEP)


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for what other threads bring about."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        pause.wait(0.02)


def minutes_ago(minutes: int) -> datetime:
    """A whole minute: a broker deletes what its timestamp says to be a week old."""
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes)


def stamp(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def objects(*numbers: int, key: bytes | None = None) -> list[tuple[bytes | None, bytes | None]]:
    return [(key, json.dumps({"n": number, "ts": number}).encode()) for number in numbers]


def read(bootstrap: str, topics: str | Sequence[str], *, parallelism: int = 1, **more: Any) -> list[dict[str, Any]]:
    """All rows of a job up to its end."""
    flow, rows = ef.Dataflow("f"), list[dict[str, Any]]()
    flow.read(ef.read_kafka(topics, bootstrap=bootstrap, **{"until": "now", **more})).write(ef.to_list(rows))
    flow.run(runtime="local", parallelism=parallelism).wait("60s")
    return rows


def numbers(rows: Sequence[dict[str, Any]]) -> list[int]:
    return sorted(row["n"] for row in rows)


@contextmanager
def running(bootstrap: str, topic: str, rows: list[Any], **more: Any) -> Iterator[Job]:
    """A job that reads a topic without end, and is cancelled at last."""
    config = more.pop("config", ef.JobConfig())
    savepoint, parallelism = more.pop("from_savepoint", None), more.pop("parallelism", 1)
    flow = ef.Dataflow("f")
    flow.read(ef.read_kafka(topic, bootstrap=bootstrap, **more)).write(ef.to_callback(rows.append))
    job = flow.run(runtime="local", config=config, from_savepoint=savepoint, parallelism=parallelism)
    try:
        yield job
    finally:
        job.cancel()


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_workers_together_read_every_record_of_two_topics_once(bootstrap, parallelism):
    one, three = make_topic(bootstrap), make_topic(bootstrap, partitions=3)
    fill(bootstrap, one, {0: objects(*range(100))})
    fill(bootstrap, three, {p: objects(*range(1000 * (p + 1), 1000 * (p + 1) + 50)) for p in range(3)})

    rows = read(bootstrap, [one, three], parallelism=parallelism)

    assert numbers(rows) == [*range(100), *(1000 * (p + 1) + n for p in range(3) for n in range(50))]


def test_raw_values_and_tombstones(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(b"k", b"\xff\n"), (None, None), (b"", b"")]})

    rows = read(bootstrap, topic, format="raw", columns=["key"])

    assert rows == [{"value": b"\xff\n", "key": b"k"}, {"value": None, "key": None}, {"value": b"", "key": b""}]


def test_text_values(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, "süß".encode()), (None, None)]})

    assert read(bootstrap, topic, format="text") == [{"value": "süß"}, {"value": None}]


def test_json_with_a_schema_leaves_other_fields_out_and_has_nulls_for_missing_ones_and_tombstones(bootstrap):
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


def test_columns_beside_the_values(bootstrap):
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


def test_event_time_is_read_though_the_flow_does_not_name_it(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(1, 2, 70_000)})
    flow, rows = ef.Dataflow("f"), list[dict[str, Any]]()
    source = ef.read_kafka(topic, bootstrap=bootstrap, schema={"n": "int64", "ts": "int64"}, event_time="ts", columns=["key"], until="now")
    flow.read(source).window(ef.tumbling("1m")).aggregate(n=ef.count()).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert [row["n"] for row in rows] == [2, 1]


def test_columns_that_the_values_have_already(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, b'{"key": 1}')]})

    with pytest.raises(ef.FlowError, match=r"the values both have `key`; leave it out of columns"):
        read(bootstrap, topic, columns=["key"])


def test_start_and_until_by_offset(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    fill(bootstrap, topic, {0: objects(*range(10)), 1: objects(*range(10, 20))})

    assert numbers(read(bootstrap, topic, start={0: 8}, until={(topic, 1): 3})) == [8, 9, 10, 11, 12]


def test_start_and_until_by_time(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    begun, second = minutes_ago(5), timedelta(seconds=1)
    for number in range(1, 6):
        fill(bootstrap, topic, {0: objects(number)}, timestamp=stamp(begun + number * second))

    assert numbers(read(bootstrap, topic, start=begun + 2 * second, until=begun + 4 * second)) == [2, 3]
    assert read(bootstrap, topic, start=datetime(2100, 1, 1), until="now") == []


def test_latest_with_an_end_reads_nothing(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(1)})

    assert read(bootstrap, topic, start="latest") == []


def test_only_committed_records_are_read(bootstrap):
    topic = make_topic(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction, producer.commit_transaction, producer.flush)):
        producer.begin_transaction()
        producer.produce(topic, json.dumps({"n": number}).encode())
        end(30)
    fill(bootstrap, topic, {0: objects(9)})  # behind a transaction that is open

    assert numbers(read(bootstrap, topic, schema={"n": "int64"})) == [0, 2]


def test_event_time_of_a_field_and_of_the_records(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    begun = minutes_ago(5)
    fill(bootstrap, topic, {0: objects(*range(0, 100_000, 1000))}, timestamp=stamp(begun))
    fill(bootstrap, topic, {1: objects(*range(500, 100_000, 1000))}, timestamp=stamp(begun) + 70_000)

    def windows(event_time: str) -> list[tuple[int, int]]:
        flow, rows = ef.Dataflow("f"), list[Any]()
        stream = flow.read(ef.read_kafka(topic, bootstrap=bootstrap, until="now", event_time=event_time))
        stream.window(ef.tumbling("1m")).aggregate(n=ef.count()).write(ef.to_list(rows))
        flow.run(runtime="local", parallelism=2).wait("60s")
        return [(row["window_start"].minute, row["n"]) for row in rows]

    assert windows("ts") == [(0, 120), (1, 80)]
    assert windows("timestamp") == [(begun.minute, 100), ((begun.minute + 1) % 60, 100)]


def test_partitions_that_are_added_are_read_from_their_beginning(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(0)})
    rows: list[Any] = []

    with running(bootstrap, topic, rows, start="latest", discover_every="100ms", parallelism=2, columns=["partition"]):
        add_partitions(bootstrap, topic, 3)
        fill(bootstrap, topic, {0: objects(1), 1: objects(2, 3), 2: objects(4)})
        until(lambda: numbers(rows) == [1, 2, 3, 4])


def test_topic_that_is_deleted_and_made_anew_stops_the_job(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(*range(10))})
    rows: list[Any] = []
    admin = AdminClient({"bootstrap.servers": bootstrap})

    with running(bootstrap, topic, rows) as job:
        until(lambda: len(rows) == 10)
        admin.delete_topics([topic])[topic].result(30)
        until(lambda: topic not in admin.list_topics(timeout=30).topics)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        with pytest.raises(ef.ConnectorError, match=r"deleted and made anew|there is no such topic"):
            job.wait("90s")


def test_job_goes_on_from_its_savepoint_with_another_number_of_workers(bootstrap, tmp_path: Path):
    topic = make_topic(bootstrap, partitions=3)
    fill(bootstrap, topic, {p: objects(*range(100 * p, 100 * p + 10)) for p in range(3)})
    rows: list[Any] = []
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="1h"))

    with running(bootstrap, topic, rows, config=config, parallelism=2) as job:
        until(lambda: len(rows) == 30)
        job.savepoint(tmp_path / "saved")
    fill(bootstrap, topic, {p: objects(100 * p + 50) for p in range(3)})
    later: list[Any] = []
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "others"), interval="1h"))
    with running(bootstrap, topic, later, config=config, parallelism=3, start="latest", from_savepoint=str(tmp_path / "saved")):
        until(lambda: numbers(later) == [50, 150, 250])


def test_workers_come_and_go_while_records_come(bootstrap, tmp_path: Path):
    topic = make_topic(bootstrap, partitions=4)
    rows: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap})

    def put(first: int) -> None:
        for number in range(first, first + 1000):
            producer.produce(topic, json.dumps({"n": number}).encode(), partition=number % 4)
        producer.flush(60)

    put(0)
    with running(bootstrap, topic, rows, schema={"n": "int64"}) as job:
        for round_, parallelism in enumerate((3, 2, 4, 1), 1):
            put(round_ * 1000)
            job.scale("read_kafka", parallelism, timeout="60s")
        put(5000)
        until(lambda: len(rows) >= 6000)
        assert numbers(rows) == list(range(6000))


def test_demand_is_what_was_not_read(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    fill(bootstrap, topic, {0: objects(*range(70)), 1: objects(*range(30))})
    source = ef.read_kafka(topic, bootstrap=bootstrap)
    source.start()
    reader = source.reader(0, 1)
    until(lambda: reader.backlog() == 100)
    batches = []
    until(lambda: bool(batches.append(reader.poll(60)) or batches[-1]))
    assert reader.backlog() == 100 - batches[-1].num_rows
    reader.close()


def test_offsets_are_committed_to_the_group_for_tools_that_show_lag(bootstrap, tmp_path: Path):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(*range(10))})
    rows: list[Any] = []
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path), interval="50ms"))
    tool = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})

    def committed() -> int:
        found = tool.committed([TopicPartition(topic, 0)], timeout=30)
        return found[0].offset

    with running(bootstrap, topic, rows, config=config, group_id=topic):
        until(lambda: committed() == 10)
    fill(bootstrap, topic, {0: objects(10)})
    read(bootstrap, topic, group_id=topic)
    until(lambda: committed() == 11)
    tool.close()


@pytest.mark.parametrize(
    "bad", [b"{", b"5", b"null", b"", b'{"n": 1}{"n": 2}', b'{"n": "x"}', b'[{"n": 1}]', b'{"n": 1}\n{"n": 2}', b'{"t": "\xff"}']
)
def test_record_that_can_not_be_decoded_stops_the_job_or_is_left_out(bootstrap, bad):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [*objects(1), (None, bad), *objects(3)]})

    with pytest.raises(ef.RecordError, match=r"a record can't be decoded: .*\(partition 0 of topic `.*`, offset 1\)"):
        read(bootstrap, topic, schema={"n": "int64", "t": "string"})

    assert numbers(read(bootstrap, topic, schema={"n": "int64", "t": "string"}, on_error="skip", columns=["offset"])) == [1, 3]


def test_records_that_can_not_be_decoded_become_dead_letters(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [*objects(1), (b"k", b"{"), *objects(3), (None, b'{"n": 4}')]})
    flow, rows, letters = ef.Dataflow("f"), list[dict[str, Any]](), list[dict[str, Any]]()
    stream = flow.read(ef.read_kafka(topic, bootstrap=bootstrap, until="now", event_time="ts", on_error="dead_letter"))
    stream.write(ef.to_list(rows)).dead_letters.write(ef.to_list(letters, name="letters"))
    job = flow.run(runtime="local")
    job.wait("60s")

    assert numbers(rows) == [1, 3]
    records = [json.loads(letter["record"]) for letter in letters]
    assert [(record["offset"], record["key"], record["value"]) for record in records] == [
        (1, b"k".hex(), b"{".hex()),
        (3, None, b'{"n": 4}'.hex()),
    ]
    assert {(letter["operator"], letter["error"], letter["key"]) for letter in letters} == {("read_kafka", "RecordError", None)}
    assert job.metrics()[0].skipped_records == 2


def test_dead_letters_that_nobody_reads(bootstrap):
    flow = ef.Dataflow("f")
    flow.read(ef.read_kafka("clicks", bootstrap=bootstrap, on_error="dead_letter")).write(ef.to_list([]))
    with pytest.raises(ef.FlowError, match="dead_letters"):
        flow.run(runtime="local")


def test_metrics_have_the_lag_of_each_partition(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    fill(bootstrap, topic, {0: objects(*range(7_000, 7_010))})
    rows: list[Any] = []
    config = ef.JobConfig(metrics=ef.MetricsConfig(window="100ms"))

    with running(bootstrap, topic, rows, event_time="ts", idle_after="10ms", config=config) as job:
        until(lambda: len(rows) == 10)
        until(lambda: [split.idle for figures in job.metrics() for split in figures.splits] == [True, True])
        splits = job.metrics()[0].splits
        assert [(split.split, split.lag, split.newest) for split in splits] == [("0", 0, 7_009_000), ("1", 0, None)]
        assert "0 records behind" in str(job.metrics())


def test_values_that_only_together_look_like_as_many_objects_are_not_mixed_up(bootstrap):
    topic = make_topic(bootstrap)
    values = [b'{"n": 0}', b'{"n": 1}\n{"n": 2}', b'{"n":', b"3}", b'{"n": 4}']
    fill(bootstrap, topic, {0: [(None, value) for value in values]})

    rows = read(bootstrap, topic, schema={"n": "int64"}, on_error="skip", columns=["offset"])

    assert [(row["n"], row["offset"]) for row in rows] == [(0, 0), (4, 4)]


def test_record_without_event_time_is_left_out(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [*objects(1), (None, b'{"n": 2}'), (None, None), *objects(4)]})

    assert numbers(read(bootstrap, topic, event_time="ts", on_error="skip")) == [1, 4]
    with pytest.raises(ef.RecordError, match=r"its event time `ts` is missing"):
        read(bootstrap, topic, event_time="ts")


def test_field_that_the_inferred_columns_have_not(bootstrap, monkeypatch):
    monkeypatch.setattr("evenflow.connectors.kafka.sample.MOST_RECORDS", 1)
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [*objects(1), (None, b'{"n": 1, "new": 2}')]})

    with pytest.raises(ef.RecordError, match=r"unexpected field.*schema="):
        read(bootstrap, topic)


def test_no_broker(monkeypatch):
    monkeypatch.setattr("evenflow.connectors.kafka.offsets.REPLY_SECONDS", 3.0)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(ef.ConnectorError, match=r"operator `read_kafka`: .*no broker answers at .*check the address"):
            read(f"127.0.0.1:{closed.getsockname()[1]}", "clicks")


def test_broker_that_speaks_no_tls(bootstrap, monkeypatch):
    monkeypatch.setattr("evenflow.connectors.kafka.offsets.REPLY_SECONDS", 3.0)
    with pytest.raises(ef.ConnectorError, match=r"no broker answers at .*expects this security.protocol"):
        read(bootstrap, make_topic(bootstrap), options={"security.protocol": "ssl"})


@pytest.mark.parametrize("options", [{"no.such.option": 1}, {"security.protocol": "nonsense"}])
def test_options_that_the_client_refuses(bootstrap, options):
    with pytest.raises(ef.FlowError, match=r"operator `read_kafka`: options: (No such|Invalid)"):
        read(bootstrap, "clicks", options=options)


def test_no_topic(bootstrap):
    with pytest.raises(ef.ConnectorError, match=r"topic `nowhere`: there is no such topic.*create it"):
        read(bootstrap, "nowhere")


def test_broker_that_starts_again(tmp_path: Path):
    port, rows = free_port(), list[Any]()
    with own_broker(port, str(tmp_path)) as (address, ready):
        assert ready
        topic = make_topic(address)
        fill(address, topic, {0: objects(*range(100))})
        source = ef.read_kafka(topic, bootstrap=address)
        source.start()
        reader = source.reader(0, 1)

        def read_to(count: int) -> bool:
            batch = reader.poll(1000)
            rows.extend([] if batch is None else batch.to_rows())
            return len(rows) >= count

        until(lambda: read_to(100))
    for _ in range(50):
        assert reader.poll(1000) is None
    with own_broker(port, str(tmp_path)) as (address, ready):
        assert ready
        fill(address, topic, {0: objects(*range(100, 150))})
        until(lambda: read_to(150))
        reader.close()
    assert numbers(rows) == list(range(150))


@pytest.mark.skipif("EVENFLOW_KAFKA" in os.environ, reason="other brokers give no larger answers than they are asked for")
def test_answer_that_is_larger_than_the_client_takes_stops_the_job(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, b"x" * 1_000)] * 100})
    bounds = {"fetch.max.bytes": 2_000, "message.max.bytes": 2_000, "receive.message.max.bytes": 3_000}
    with pytest.raises(ef.ConnectorError, match=r"options=\{'receive.message.max.bytes': ...\} \(.*Invalid response size"):
        read(bootstrap, topic, format="raw", schema=None, options=bounds)
    assert len(read(bootstrap, topic, format="raw")) == 100


def test_offset_behind_the_end(bootstrap):
    with pytest.raises(ef.ConnectorError, match=r"ends at offset 0"):
        read(bootstrap, make_topic(bootstrap), start={0: 5}, format="raw")


def test_partition_that_is_not_there(bootstrap):
    with pytest.raises(ef.ConnectorError, match=r"start names partition 7 of topic .*, which isn't there"):
        read(bootstrap, make_topic(bootstrap), start={7: 5}, format="raw")


def test_client_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(ef.FlowError, match=r"pip install 'evenflow\[kafka\]'"):
        ef.read_kafka("clicks", bootstrap="localhost:9092").start()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"topics": []}, "expected the name of a topic, or a list of names"),
        ({"topics": ["a", "a"]}, "has a name twice"),
        ({"format": "xml"}, 'expected "json"'),
        ({"format": "raw", "schema": {"a": "int64"}}, "takes no schema"),
        ({"start": "first"}, 'expected "earliest", "latest", a datetime'),
        ({"until": "later"}, 'expected "now"'),
        ({"start": {"a": 1}}, "start names 'a'"),
        ({"start": {0: -1}}, "start has the offset -1"),
        ({"columns": ["colour"]}, "expected a list of these, each once: key, value"),
        ({"columns": "key"}, "expected a list of these"),
        ({"on_error": "ignore"}, "on_error='ignore'"),
        ({"on_lost_offsets": "latest"}, "on_lost_offsets='latest'"),
        ({"format": "raw", "columns": ["value"]}, "both have `value`"),
        ({"idle_after": "soon"}, "idle_after 'soon' is not a duration"),
        ({"options": {"group.id": "x"}}, "can't be set"),
    ],
)
def test_arguments_that_can_not_be(arguments, problem):
    with pytest.raises(ef.FlowError, match=problem):
        ef.read_kafka(arguments.pop("topics", "clicks"), bootstrap="localhost:9092", **arguments)
