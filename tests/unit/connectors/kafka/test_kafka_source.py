"""The records of its topics that a job reads, and their event times; over a broker, in jobs of this process."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka_broker import fill, make_topic
from kafka_jobs import minutes_ago, numbers, objects, read, stamp, until
from patience import patience

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.mark.slow
@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_workers_together_read_every_record_of_two_topics_once(bootstrap, parallelism):
    one, three = make_topic(bootstrap), make_topic(bootstrap, partitions=3)
    fill(bootstrap, one, {0: objects(*range(100))})
    fill(bootstrap, three, {p: objects(*range(1000 * (p + 1), 1000 * (p + 1) + 50)) for p in range(3)})

    rows = read(bootstrap, [one, three], parallelism=parallelism)

    assert numbers(rows) == [*range(100), *(1000 * (p + 1) + n for p in range(3) for n in range(50))]


def test_start_and_until_by_offset(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    fill(bootstrap, topic, {0: objects(*range(10)), 1: objects(*range(10, 20))})

    assert numbers(read(bootstrap, topic, start={0: 8}, until={(topic, 1): 3})) == [8, 9, 10, 11, 12]


@pytest.mark.slow
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
    producer.init_transactions(patience(30))
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction, producer.commit_transaction, producer.flush)):
        producer.begin_transaction()
        producer.produce(topic, json.dumps({"n": number}).encode())
        end(30)
    fill(bootstrap, topic, {0: objects(9)})  # after an open transaction

    assert numbers(read(bootstrap, topic, schema={"n": "int64"})) == [0, 2]


@pytest.mark.slow
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


def test_event_time_is_read_though_the_flow_does_not_name_it(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(1, 2, 70_000)})
    flow, rows = ef.Dataflow("f"), list[dict[str, Any]]()
    source = ef.read_kafka(topic, bootstrap=bootstrap, schema={"n": "int64", "ts": "int64"}, event_time="ts", columns=["key"], until="now")
    flow.read(source).window(ef.tumbling("1m")).aggregate(n=ef.count()).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert [row["n"] for row in rows] == [2, 1]


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
