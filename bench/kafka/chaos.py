"""From Kafka to Kafka, exactly once, while something of the job is killed every two seconds: a reader of the topic sees each row once.

A job counts the records of each key. Its workers, its coordinator and the process that commits are killed, all connections with the broker
are cut at once, the source and the count are scaled between one, three and two workers, and the topic that is read gets more
partitions. At the end DuckDB compares what a reader of committed messages finds with what was written.

    make chaos-kafka MINUTES=1        or        python -m evenflow.bench.kafka.chaos --minutes 1 --seed 7
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import psutil
import pyarrow as pa

import evenflow as ef
from evenflow.testing.chaos.chaos import KINDS, ZOMBIE, Chaos, Killer

from ..background import Background
from ..disturbed import disturbed_config, wait_until
from ..exact_rows import compare_rows
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

ANSWER_SECONDS = 5.0
PROGRAM = "commit_program"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`rows` went in and `found` came out, `early` of them while something happened; `missing` and `wrong` rows beside DuckDB's.

    `partitions`: of the topic at the end. `kinds` of accidents.
    """

    rows: int
    early: int
    found: int
    missing: int
    wrong: int
    partitions: int
    kinds: frozenset[str]
    table: str


class Writer(Background):
    """A context in which numbered rows are appended to all partitions of a topic in turn, `RATE` a second."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(0.02, "writer")
        self._bootstrap, self._topic = bootstrap, topic
        self.partitions, self.rows = PARTITIONS, 0
        self._known, self._begun = 0, time.monotonic()
        self._producer: Producer

    def add_partition(self) -> str | None:
        """One more, up to `MOST_PARTITIONS`; what was done."""
        if self.partitions == MOST_PARTITIONS:
            return None
        add_partitions(self._bootstrap, self._topic, self.partitions + 1)
        self.partitions += 1
        return f"the topic has {self.partitions} partitions"

    def _step(self) -> None:
        if self._known != self.partitions:
            # Another producer: one that has sent to the topic looks for more partitions after minutes only.
            self._known = self.partitions
            self._producer = cluster_at(self._bootstrap).producer(acks="all", enable_idempotence=True)
        due = int((time.monotonic() - self._begun) * RATE)
        for n in range(self.rows, due):
            self._producer.produce(self._topic, json.dumps({"n": n, "k": n % KEYS, "ts": n}).encode(), partition=n % self._known)
        self._producer.flush()
        self.rows = max(self.rows, due)


def flow_of(bootstrap: str, source: str, target: str) -> ef.Dataflow:
    """Each row with the number of rows of its key so far."""

    def number(count: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        counted = (count or 0) + 1
        return counted, {"n": row["n"], "k": row["k"], "count": counted}

    flow = ef.Dataflow(NAME)
    rows = flow.read(
        ef.read_kafka(
            source, bootstrap=bootstrap, schema={"n": "int64", "k": "int64", "ts": "int64"}, event_time="ts", discover_every="200ms"
        )
    )
    counted = rows.parallelism(1).key_by("k").stateful_map(number).named("count").parallelism(1)
    counted.write(ef.write_kafka(target, bootstrap=bootstrap, key="k"))
    return flow


def run(
    folder: Path,
    seconds: float,
    *,
    every: float = EVERY,
    kinds: Sequence[str] = KINDS,
    seed: int = 0,
    say: Callable[[str], object] = print,
) -> Outcome:
    """Run the job for `seconds`, let something happen to it every `every` seconds, and compare what is in its topic with DuckDB's rows.

    Ray runs already; `folder` is empty. `kinds`: what is killed besides connections and the committing process, as in `Chaos`. Raises the
    job's error if it gives up, BenchmarkError if there is no broker, TimeoutError if the job doesn't catch up in the end.
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
        try:
            others: dict[str, Killer] = {
                "connections": lambda: _cut(proxy),
                "committing process": lambda: _kill_committing(job),
                "partition added": writer.add_partition,
                "source scaled": _Scaling(job, "read_kafka"),
                "count scaled": _Scaling(job, "count"),
            }
            must = {*kinds, "connections", "committing process"} - {ZOMBIE}  # whose turn may come while no worker is there
            with Chaos(job, every=every, kinds=kinds, others=others, seed=seed, say=say) as chaos:
                wait_until(job, lambda: False, seconds)
                wait_until(job, lambda: must <= {kill.kind for kill in chaos.kills}, END_SECONDS)
                early = _count(broker, written["counts"])
            wait_until(job, chaos.recovered, END_SECONDS)
            writer.stop()
            _catch_up(job, broker, written["counts"], writer.rows)
            job.stop(drain=True)
            job.wait(END_SECONDS)
        finally:
            with suppress(ef.EvenflowError):  # which `wait` has raised already
                job.cancel()
                job.wait(END_SECONDS)
        found, missing, wrong = compare(_rows(broker, written["counts"]), writer.rows)
        happened = frozenset(kill.kind for kill in chaos.kills)
        return Outcome(writer.rows, early, found, missing, wrong, writer.partitions, happened, chaos.table())


def compare(found: pa.Table, rows: int) -> tuple[int, int, int]:
    """How many rows were found, how many are missing, and how many are wrong: beside those that a single reader would give.

    Which of a key's rows gets which number depends on the order of partitions, so the rows and the numbers are compared by themselves.

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
    """All rows that a reader of committed messages finds."""
    values = [json.loads(value or b"") for records in records_of(bootstrap, topic).values() for _, value in records]
    return pa.Table.from_pylist(values, schema=pa.schema({"n": pa.int64(), "k": pa.int64(), "count": pa.int64()}))


def _catch_up(job: ef.Job, bootstrap: str, topic: str, rows: int) -> None:
    """Wait until as many rows are there as were written."""
    wait_until(job, lambda: _count(bootstrap, topic) >= rows, END_SECONDS)


def _count(bootstrap: str, topic: str) -> int:
    return sum(map(len, records_of(bootstrap, topic).values()))


def _cut(proxy: Proxy) -> str | None:
    count = proxy.cut()
    return f"{count} are cut" if count else None


class _Scaling:
    """Begins, each time that it is called, a change to the next of `WORKERS`; says what it is, or None if it can't begin."""

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
    """Kill the process that commits, wherever the coordinator is."""
    import ray
    from ray.exceptions import RayError

    from ...actors.processes.process import NAMESPACE

    try:
        coordinator = ray.get_actor(f"{job.name}/coordinator", namespace=NAMESPACE)
        killed: Any = ray.get(coordinator.__ray_call__.remote(_kill_child), timeout=ANSWER_SECONDS)
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


def main() -> int:
    """Exit code: 0 if all rows are right, 1 if one is not, 130 after Ctrl-C."""
    arguments = argparse.ArgumentParser(description="Kafka to Kafka, exactly once, while processes are killed and connections are cut")
    arguments.add_argument("--minutes", type=float, default=1.0, help="default: %(default)s")
    arguments.add_argument("--every", type=float, default=EVERY, help="seconds from one accident to the next (default: %(default)s)")
    arguments.add_argument("--seed", type=int, default=None, help="what happens, in which order (default: drawn, and printed)")
    given = arguments.parse_args()
    say = partial(print, file=sys.stdout, flush=True)
    seed = given.seed if given.seed is not None else secrets.randbelow(10_000)
    say(f"seed {seed}: --seed {seed} gives the same accidents and changes, in the same order")
    try:
        with _cluster() as folder:
            outcome = run(folder, given.minutes * 60, every=given.every, seed=seed, say=say)
    except KeyboardInterrupt:
        say("Stopped.")
        return 130
    say(outcome.table)
    say(f"rows: {outcome.rows:,} in, {outcome.found:,} out, {outcome.early:,} of them before the last accident")
    say(f"the topic that is read has {outcome.partitions} partitions")
    right = not outcome.missing and not outcome.wrong
    say("each row is there once, with DuckDB's counts" if right else f"WRONG: {outcome.missing:,} are missing, {outcome.wrong:,} wrong")
    return 0 if right else 1


@contextmanager
def _cluster() -> Iterator[Path]:
    """A Ray cluster of its own, and a folder for the job."""
    import ray

    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # The path of a Unix socket, which Ray has there, must be short.
    with tempfile.TemporaryDirectory(prefix="chaos-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        ray.init("local", include_dashboard=False, log_to_driver=False, _temp_dir=f"{folder}/ray")
        (Path(folder) / "job").mkdir()
        try:
            yield Path(folder) / "job"
        finally:
            ray.shutdown()


if __name__ == "__main__":
    sys.exit(main())
