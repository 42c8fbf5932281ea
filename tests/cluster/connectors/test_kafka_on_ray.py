"""A Kafka topic through a job on Ray that loses workers, is scaled, and whose topic gets more partitions: every record counts
once.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator

import duckdb
import pytest
from confluent_kafka import Producer
from kafka_broker import kafka_broker, make_topic
from patience import patience
from watching import pid, until

import evenflow as ef
from evenflow.bench.kafka.topics import add_partitions

KEYS = 20


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with kafka_broker() as address:
        yield address


class Writer:
    """A thread that appends numbered records to all partitions of a topic until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._bootstrap, self._topic, self.partitions, self.written = bootstrap, topic, partitions, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        known = 0
        while not self._stop.wait(0.02):
            if known != self.partitions:
                # Another producer: one that has sent to the topic notices new partitions after minutes only.
                known, producer = self.partitions, Producer({"bootstrap.servers": self._bootstrap})
            for _ in range(20):
                value = json.dumps({"n": self.written, "k": self.written % KEYS, "ts": self.written})
                producer.produce(self._topic, value.encode(), partition=self.written % known)
                self.written += 1
            producer.flush(patience(60))

    def stop(self) -> int:
        """Stop, and return the number of records in the topic."""
        self._stop.set()
        self._thread.join()
        return self.written


def test_lost_workers_scaling_and_new_partitions_do_not_change_the_output(bootstrap, tmp_path):
    def number(state, row):
        n = (state or 0) + 1
        return n, {"k": row["k"], "n": row["n"], "count": n}

    topic = make_topic(bootstrap, partitions=3)
    writer = Writer(bootstrap, topic, 3)
    flow, rows, counted = ef.Dataflow("from-kafka"), [], []
    source = ef.read_kafka(
        topic, bootstrap=bootstrap, schema={"n": "int64", "k": "int64", "ts": "int64"}, event_time="ts", discover_every="200ms"
    )
    stream = flow.read(source).parallelism(1)
    stream.write(ef.to_list(rows, name="to_rows"))
    stream.key_by("k").stateful_map(number).named("count").write(ef.to_list(counted, name="to_counted"))
    config = ef.JobConfig(
        parallelism=2,
        key_groups=16,
        checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="300ms"),
        restart=ef.RestartConfig(delay="10ms", most=1_000),
    )
    job = flow.run(config=config)
    try:
        goes_on(job, rows)
        job.scale("read_kafka", 3)
        goes_on(job, rows)
        os.kill(pid(job, "read_kafka-2"), signal.SIGKILL)
        goes_on(job, rows)
        add_partitions(bootstrap, topic, 5)
        writer.partitions = 5
        goes_on(job, rows)
        job.scale("read_kafka", 2)
        os.kill(pid(job, "read_kafka-0"), signal.SIGKILL)
        goes_on(job, rows)
        written = writer.stop()
        until(lambda: len(rows) >= written and len(counted) >= written, "all is committed")
    finally:
        writer.stop()
        job.cancel()

    assert sorted(row["n"] for row in rows) == list(range(written))
    expected = duckdb.sql(
        f"select n % {KEYS} as k, row_number() over (partition by n % {KEYS}) as count from range({written}) as t(n) order by k, count"
    ).fetchall()
    assert sorted((row["k"], row["count"]) for row in counted) == expected


def goes_on(job, rows):
    """Wait until rows are committed that it had not read before."""
    before = len(rows)

    def news():
        assert not job.status().state.final, job.status().error
        return len(rows) > before + 200

    until(news, f"{job.name} commits new rows")
