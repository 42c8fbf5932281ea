"""Records of a Kafka topic into Arrow: evenflow's reader beside the client alone, in turns, in this process.

Both take the same records of 100 bytes in four partitions. What counts is rows per second of processor time of the thread that reads:
the wall clock mostly shows the broker. The client's own threads are in the details.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.json as arrow_json

from ...connectors.kafka.cluster import KafkaCluster
from ...connectors.kafka.source import CLIENT, read_kafka
from .. import machine
from ..errors import BenchmarkError
from ..record import Case, Verdict
from .topics import PARTITIONS, topics

if TYPE_CHECKING:
    from confluent_kafka import Message

AT_ONCE = 10_000
"""Rows that are asked for at a time."""

TARGET = 0.8
SCHEMA = pa.schema({"n": pa.int64(), "ts": pa.int64(), "name": pa.string(), "value": pa.float64()})
FORMATS = ("raw", "json")


def measure(bootstrap: str, rows: int, repeat: int, say: Callable[[str], None]) -> tuple[list[Case], list[Verdict]]:
    """Fills a topic of its own. Raises BenchmarkError if rows are missing."""
    with topics(bootstrap, ["records"]) as made:
        cluster, topic = KafkaCluster(bootstrap, CLIENT, "bench"), made["records"]
        readers: dict[str, Callable[[str], int]] = {
            "client": lambda form: _client(cluster, topic, form, rows),
            "evenflow": lambda form: _evenflow(bootstrap, topic, form),
        }
        details: dict[str, list[dict[str, float]]] = {f"{form}/{system}": [] for form in FORMATS for system in readers}
        _fill(cluster, topic, rows)
        for _ in range(repeat):
            for form in FORMATS:
                for system, read in readers.items():
                    details[f"{form}/{system}"].append(_measured(lambda read=read, form=form: read(form), rows))  # type: ignore[misc]  # bound now
    cases = [Case(name, "rows/thread-s", "higher", tuple(d["rate"] for d in found), tuple(found)) for name, found in details.items()]
    for case in cases:
        say(f"{case.name}: {', '.join(f'{value / 1e6:.2f}' for value in case.values)} M rows per second of the thread")
    medians = {case.name: median(case.values) for case in cases}
    verdicts = [Verdict(f"{f}, evenflow / client", medians[f"{f}/evenflow"] / medians[f"{f}/client"], TARGET, "higher") for f in FORMATS]
    return cases, verdicts


def _measured(read: Callable[[], int], rows: int) -> dict[str, float]:
    busy = machine.busy_share()
    wall, process, thread = time.perf_counter(), time.process_time(), time.thread_time()
    found = read()
    wall, process, thread = time.perf_counter() - wall, time.process_time() - process, time.thread_time() - thread
    if found != rows:
        raise BenchmarkError(f"{found:,} of {rows:,} rows were read")
    return {"rate": rows / thread, "rows_per_second": rows / wall, "cpu_seconds_per_million": process / rows * 1e6, "busy_before": busy}


def _client(cluster: KafkaCluster, topic: str, form: str, rows: int) -> int:
    """As little as it takes to have the columns."""
    from confluent_kafka import TopicPartition

    consumer = cluster.consumer(group_id=topic, enable_auto_commit=False, isolation_level="read_committed")
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found = 0
    while found < rows:
        messages: list[Message] = consumer.consume(AT_ONCE, 0.05)
        values: list[Any] = [message.value() for message in messages]
        found += (_raw if form == "raw" else _json)(values) if values else 0
    consumer.close()
    return found


def _raw(values: list[bytes]) -> int:
    return len(pa.array(values, pa.binary()))


def _json(values: list[bytes]) -> int:
    lines = b"\n".join(values)
    options = arrow_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    return int(arrow_json.read_json(io.BytesIO(lines), reading, options).num_rows)


def _evenflow(bootstrap: str, topic: str, form: str) -> int:
    source = read_kafka(topic, bootstrap=bootstrap, until="now", format=form, schema=SCHEMA if form == "json" else None)  # type: ignore[arg-type]  # one of FORMATS
    source.start()
    reader, found = source.reader(0, 1), 0
    while not reader.finished:
        batch = reader.poll(AT_ONCE)
        reader.watermark()
        if batch is None:
            time.sleep(reader.ready_in())
        else:
            found += batch.num_rows
    reader.close()
    return found


def _fill(cluster: KafkaCluster, topic: str, rows: int) -> None:
    producer = cluster.producer(acks="all")
    for n in range(rows):
        value = json.dumps({"n": n, "ts": 1_600_000_000_000 + n, "name": f"some name {n % 100}", "value": n * 0.5}).ljust(100)
        producer.produce(topic, value.encode(), partition=n % PARTITIONS)
        if n % AT_ONCE == 0:
            producer.flush(60)
    if producer.flush(60):
        raise BenchmarkError("the broker did not take all records within 60 s")
