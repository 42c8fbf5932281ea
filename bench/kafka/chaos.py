"""A job from Kafka to Kafka, exactly once, that loses something every two seconds: a reader of the topic sees each row once.

A job counts the records of each key. Its workers, its coordinator and the process that commits are killed, all connections with the broker
are cut at once, the source and the count are scaled between one, three and two workers, and the topic that is read gets more
partitions. At the end DuckDB compares what a reader of committed messages finds with what was written.

    make chaos-kafka MINUTES=1        or        python -m evenflow.bench.kafka.chaos --minutes 1 --seed 7
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import psutil
import pyarrow as pa

import evenflow as ef
from evenflow.testing.chaos.chaos import KINDS, Chaos, Killer

from ..harness.background import Background
from ..harness.benchmark import Say
from ..harness.chaos import Outcome, disturb, disturbed_config, main, wait_until
from ..harness.exact_rows import compare_rows
from ..harness.jobs import cancelled, drain
from .broker import kafka_broker
from .proxy import Proxy
from .topics import add_partitions, cluster_at, records_of, topics

if TYPE_CHECKING:
    from confluent_kafka import Producer

NAME = "chaos-kafka"
EVERY = 2.0
RATE = 1_000
"""Rows per second."""

KEYS = 50
PARTITIONS, MOST_PARTITIONS = 3, 8
WORKERS = (3, 2, 1)
"""The workers that an operator gets, one number after the other; it begins with one."""

END_SECONDS = 180.0
"""The time in which the job must catch up at the end, when nothing is killed any more."""

RESPONSE_SECONDS = 5.0
PROGRAM = "commit_program"


class Writer(Background):
    """A context in which numbered rows are appended to all partitions of a topic in turn, `RATE` a second."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(0.02, "writer")
        self._bootstrap, self._topic = bootstrap, topic
        self.partitions, self.rows = PARTITIONS, 0
        self._known, self._begun = 0, time.monotonic()
        self._producer: Producer

    def add_partition(self) -> str | None:
        """Add a partition, up to `MOST_PARTITIONS`, and describe it."""
        if self.partitions == MOST_PARTITIONS:
            return None
        add_partitions(self._bootstrap, self._topic, self.partitions + 1)
        self.partitions += 1
        return f"the topic has {self.partitions} partitions"

    def _step(self) -> None:
        if self._known != self.partitions:
            # A new producer: one that has sent to the topic looks for more partitions only after minutes.
            self._known = self.partitions
            self._producer = cluster_at(self._bootstrap).producer(acks="all", enable_idempotence=True)
        due = int((time.monotonic() - self._begun) * RATE)
        for n in range(self.rows, due):
            self._producer.produce(self._topic, json.dumps({"n": n, "k": n % KEYS, "ts": n}).encode(), partition=n % self._known)
        self._producer.flush()
        self.rows = max(self.rows, due)


def flow_of(bootstrap: str, source: str, target: str) -> ef.Dataflow:
    """Return a flow that numbers the rows of each key."""

    def number(count: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        counted = (count or 0) + 1
        return counted, {"n": row["n"], "k": row["k"], "count": counted}

    flow, types = ef.Dataflow(NAME), {"n": "int64", "k": "int64", "ts": "int64"}
    rows = flow.read(ef.read_kafka(source, bootstrap=bootstrap, schema=types, event_time="ts", discover_every="200ms"))
    counted = rows.parallelism(1).key_by("k").stateful_map(number).named("count").parallelism(1)
    counted.write(ef.write_kafka(target, bootstrap=bootstrap, key="k"))
    return flow


def run(folder: Path, seconds: float, *, every: float = EVERY, kinds: Sequence[str] = KINDS, seed: int = 0, say: Say = print) -> Outcome:
    """Run the job for `seconds`, with an accident every `every` seconds, and compare its topic with DuckDB's rows.

    Ray runs already; `folder` is empty. `kinds`: accidents besides connections and the committing process, as in `Chaos`. Raises the job's
    error if it gives up, BenchmarkError if there is no broker, TimeoutError if the job doesn't catch up in the end.
    """
    with (
        kafka_broker() as broker,
        topics(broker, ["rows"], PARTITIONS) as read,
        topics(broker, ["counts"], PARTITIONS) as written,
        Proxy(broker) as proxy,
        Writer(broker, read["rows"]) as writer,
    ):
        config = disturbed_config(folder, interval="300ms", parallelism=2, key_groups=32)
        job = flow_of(proxy.bootstrap, read["rows"], written["counts"]).run(runtime="ray", config=config)
        with cancelled(job, END_SECONDS):
            others: dict[str, Killer] = {
                "connections": lambda: _cut(proxy),
                "committing process": lambda: _kill_committing(job),
                "partition added": writer.add_partition,
                "source scaled": _Scaling(job, "read_kafka"),
                "count scaled": _Scaling(job, "count"),
            }
            must = {*kinds, "connections", "committing process"}
            chaos = Chaos(job, every=every, kinds=kinds, others=others, seed=seed, say=say)
            disturb(job, chaos, seconds, lambda: must <= {kill.kind for kill in chaos.kills}, END_SECONDS)
            wait_until(job, chaos.recovered, END_SECONDS)
            writer.stop()
            wait_until(job, lambda: _count(broker, written["counts"]) >= writer.rows, END_SECONDS)
            drain(job, END_SECONDS)
        found, missing, wrong = compare(_rows(broker, written["counts"]), writer.rows)
        happened = frozenset(kill.kind for kill in chaos.kills)
        return Outcome(writer.rows, {"counts": found}, missing, wrong, happened, chaos.zombies, chaos.table())


def compare(found: pa.Table, rows: int) -> tuple[int, int, int]:
    """Return how many rows there are, how many are missing, and how many are wrong, compared with those of a single reader.

    Which of a key's rows gets which number depends on the order of partitions, so rows and numbers are compared separately.

    >>> compare(pa.table({"n": [0, 1, 1], "k": [0, 1, 1], "count": [1, 1, 2]}), 3)
    (3, 2, 2)
    """
    with duckdb.connect() as database:
        database.register("given", found)
        database.execute("CREATE TABLE rows AS SELECT n, n % ? AS k FROM range(?) t(n)", [KEYS, rows])
        numbers = compare_rows(database, "FROM rows", "FROM given")
        counts = compare_rows(database, "SELECT k, row_number() OVER (PARTITION BY k) AS count FROM rows", "FROM given")
    return found.num_rows, numbers[1] + counts[1], numbers[2] + counts[2]


def _rows(bootstrap: str, topic: str) -> pa.Table:
    values = [json.loads(value or b"") for records in records_of(bootstrap, topic).values() for _, value in records]
    return pa.Table.from_pylist(values, schema=pa.schema({"n": pa.int64(), "k": pa.int64(), "count": pa.int64()}))


def _count(bootstrap: str, topic: str) -> int:
    return sum(map(len, records_of(bootstrap, topic).values()))


def _cut(proxy: Proxy) -> str | None:
    count = proxy.cut()
    return f"{count} are cut" if count else None


class _Scaling:
    """A change to the next number of `WORKERS` at each call; returns its description, or None if it can't begin."""

    def __init__(self, job: ef.Job, operator: str) -> None:
        self._job, self._operator, self._turns = job, operator, itertools.cycle(WORKERS)

    def __call__(self) -> str | None:
        workers = next(self._turns)
        try:
            self._job.scale(self._operator, workers, timeout=None)
        except (ef.EvenflowError, TimeoutError):  # the job recovers, or is being scaled
            return None
        return f"{self._operator} to {workers} workers"


def _kill_committing(job: ef.Job) -> str | None:
    """Kill the process that commits, on the coordinator's node."""
    import ray
    from ray.exceptions import RayError

    from ...actors.processes.process import NAMESPACE

    try:
        coordinator = ray.get_actor(f"{job.name}/coordinator", namespace=NAMESPACE)
        killed: Any = ray.get(coordinator.__ray_call__.remote(_kill_child), timeout=RESPONSE_SECONDS)
    except (ValueError, RayError):  # it is being restarted
        return None
    return None if killed is None else f"process {killed}"


def _kill_child(_: Any) -> int | None:
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if any(PROGRAM in word for word in child.cmdline()):
                child.kill()
                return child.pid
    return None


def _run(folder: Path, given: argparse.Namespace, say: Say) -> Outcome:
    import ray

    ray.init("local", include_dashboard=False, log_to_driver=False, _temp_dir=f"{folder}/ray")
    (folder / "job").mkdir()
    try:
        return run(folder / "job", given.minutes * 60, every=given.every, seed=given.seed, say=say)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main("Kafka to Kafka, exactly once, while processes are killed and connections are cut", 1.0, EVERY, _run))
