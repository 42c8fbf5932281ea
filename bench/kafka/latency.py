"""Latency from topic to topic at a fixed rate: from when a row was due until a reader of committed messages has its count.

A row's clock starts when it was due, so a stall counts for every row that it delays. Another process writes the rows; this one reads the
counts while the job runs.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

import evenflow as ef

from ..harness import machine
from ..harness.benchmark import Say
from ..harness.conditions import scratch
from ..harness.errors import BenchmarkError
from ..harness.jobs import drain
from ..harness.record import Case
from .topics import PARTITIONS, cluster_at, topics

RATE = 10_000
KEYS = 100_000
"""So many that nearly every row has a count of its own."""

WARM_UP = 5
TICK = 0.002
"""Seconds between two writes of rows that are due."""

AT_ONCE = 10_000
"""Messages that are read at a time."""

TYPES: Final = {"key": "int64", "created": "int64"}
PATIENCE = 60.0
"""Seconds without a message after which the run has failed."""

SHARES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Mode:
    """The guarantee of the sink that writes the counts, and the interval of checkpoints."""

    guarantee: str
    interval: str


MODES: Mapping[str, Mode] = {
    "at least once": Mode("at_least_once", "1s"),
    "exactly once, 100 ms": Mode("exactly_once", "100ms"),
    "exactly once, 1 s": Mode("exactly_once", "1s"),
}


def measure(bootstrap: str, seconds: int, say: Say) -> list[Case]:
    """Measure each mode for `seconds` after a warm-up. Raises BenchmarkError if counts are missing."""
    cases: list[Case] = []
    for name, mode in MODES.items():
        busy = machine.busy_share()
        latencies = _latencies(bootstrap, mode, seconds)
        details = ({"busy_before": busy, "counts": len(latencies), "rows": RATE * seconds},)
        found = {share: float(np.quantile(latencies, part)) for share, part in SHARES.items()}
        cases += [Case(f"latency/{name}/{share}", "ms", "lower", (value,), details) for share, value in found.items()]
        say(f"latency, {name}: {', '.join(f'{share} {value:.1f} ms' for share, value in found.items())}")
    return cases


def _latencies(bootstrap: str, mode: Mode, seconds: int) -> npt.NDArray[np.float64]:
    """Return latencies in ms, without those of rows that were due in the warm-up."""
    with topics(bootstrap, ["rows", "counts"]) as names, scratch("checkpoints") as folder:
        flow = ef.Dataflow("bench-kafka-latency")
        rows = flow.read(ef.read_kafka(names["rows"], bootstrap=bootstrap, schema=TYPES, name="rows"))
        counts = rows.key_by("key").aggregate(n=ef.count(), created=ef.last("created"))
        counts.write(ef.write_kafka(names["counts"], bootstrap=bootstrap, key="key", guarantee=mode.guarantee))  # type: ignore[arg-type]  # one of two
        job = flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder), interval=mode.interval)))
        total = RATE * (seconds + WARM_UP)
        writer = multiprocessing.get_context("spawn").Process(target=write_rows, args=(bootstrap, names["rows"], total), daemon=True)
        writer.start()
        try:
            created, came = _read(bootstrap, names["counts"], total)
        finally:
            writer.join(PATIENCE)
            drain(job, PATIENCE)
    measured = created >= created.min() + WARM_UP * 1_000_000_000
    return np.asarray((came[measured] - created[measured]) / 1e6, np.float64)


def write_rows(bootstrap: str, topic: str, total: int) -> None:
    """Write `RATE` rows a second, each with the time (ns) at which it was due."""
    producer = cluster_at(bootstrap).producer(acks="all", enable_idempotence=True, linger_ms=1)
    sent, begun = 0, time.time_ns()
    while sent < total:
        due = min(total, (time.time_ns() - begun) * RATE // 1_000_000_000)
        for number in range(sent, due):
            value = json.dumps({"key": number * 7919 % KEYS, "created": begun + number * 1_000_000_000 // RATE})
            producer.produce(topic, value.encode(), partition=number % PARTITIONS)
        sent = due
        producer.poll(0)
        time.sleep(TICK)
    producer.flush(PATIENCE)


def _read(bootstrap: str, topic: str, total: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Read the counts of all rows; returns when the rows were due and when their counts arrived (ns)."""
    from confluent_kafka import TopicPartition

    consumer = cluster_at(bootstrap).consumer(group_id=topic, enable_auto_commit=False, isolation_level="read_committed")
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    values: list[bytes] = []
    came: list[int] = []
    while len(values) < total:
        first = consumer.poll(PATIENCE)
        if first is None or first.error() is not None:
            raise BenchmarkError(f"only {len(values):,} of {total:,} rows were counted: {'no message' if first is None else first.error()}")
        messages = [first, *consumer.consume(AT_ONCE, 0)]
        now = time.time_ns()
        values += [message.value() or b"" for message in messages if message.error() is None]
        came += [now] * (len(values) - len(came))
    consumer.close()
    return np.array([json.loads(value)["created"] for value in values], np.int64), np.array(came, np.int64)
