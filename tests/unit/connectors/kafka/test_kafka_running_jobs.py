"""Jobs that read Kafka endlessly, while topics, workers and brokers come and go."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_broker import fill, make_topic
from kafka_jobs import numbers, objects, read, running, until
from patience import patience

import evenflow as ef
from evenflow.bench.kafka.broker import free_port, own_broker
from evenflow.bench.kafka.topics import add_partitions

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.mark.slow
def test_partitions_that_are_added_are_read_from_their_beginning(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(0)})
    rows: list[Any] = []

    with running(bootstrap, topic, rows, start="latest", discover_every="100ms", parallelism=2, columns=["partition"]):
        add_partitions(bootstrap, topic, 3)
        fill(bootstrap, topic, {0: objects(1), 1: objects(2, 3), 2: objects(4)})
        until(lambda: numbers(rows) == [1, 2, 3, 4])


@pytest.mark.slow
def test_topic_that_is_deleted_and_recreated_stops_the_job(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(*range(10))})
    rows: list[Any] = []
    admin = AdminClient({"bootstrap.servers": bootstrap})

    with running(bootstrap, topic, rows) as job:
        until(lambda: len(rows) == 10)
        admin.delete_topics([topic])[topic].result(patience(30))
        until(lambda: topic not in admin.list_topics(timeout=patience(30)).topics)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(patience(30))
        with pytest.raises(ef.ConnectorError, match=r"deleted and recreated|there is no such topic"):
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
        producer.flush(patience(60))

    put(0)
    with running(bootstrap, topic, rows, schema={"n": "int64"}) as job:
        for round_, parallelism in enumerate((3, 2, 4, 1), 1):
            put(round_ * 1000)
            job.scale("read_kafka", parallelism, timeout="60s")
        put(5000)
        until(lambda: len(rows) >= 6000)
        assert numbers(rows) == list(range(6000))


@pytest.mark.slow
def test_offsets_are_committed_to_the_group_for_tools_that_show_lag(bootstrap, tmp_path: Path):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: objects(*range(10))})
    rows: list[Any] = []
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path), interval="50ms"))
    tool = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})

    def committed() -> int:
        found = tool.committed([TopicPartition(topic, 0)], timeout=patience(30))
        return found[0].offset

    with running(bootstrap, topic, rows, config=config, group_id=topic):
        until(lambda: committed() == 10)
    fill(bootstrap, topic, {0: objects(10)})
    read(bootstrap, topic, group_id=topic)
    until(lambda: committed() == 11)
    tool.close()


@pytest.mark.slow
def test_metrics_have_the_lag_of_each_partition(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    fill(bootstrap, topic, {0: objects(*range(7_000, 7_010))})
    rows: list[Any] = []
    config = ef.JobConfig(metrics=ef.MetricsConfig(window="100ms"))

    with running(bootstrap, topic, rows, event_time="ts", idle_after="10ms", config=config) as job:
        until(lambda: len(rows) == 10)
        until(lambda: [split.idle for figures in job.metrics() for split in figures.splits] == [True, True])
        splits = job.metrics()[0].splits
        assert [(split.split, split.lag, split.newest) for split in splits] == [
            ("0", 0, datetime.fromtimestamp(7.009, UTC)),
            ("1", 0, None),
        ]
        assert [split.position for split in splits] == [10, 0]
        assert "0 records behind" in str(job.metrics())


@pytest.mark.slow
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
