"""T1 and T2 from Spark to Spark, while the job loses a process every few seconds: the results must equal Spark's own.

Two streaming queries feed one job: counts and sums per key and window of a second (T1), and the rows far above the running mean of their
key (T2), each from a source of its own. The balancer and a scaling policy are on, and the demand changes, so that they act. The cluster has
two nodes. One is cut off from time to time, with a coordinator that doesn't know that it was declared lost.

    make chaos MINUTES=10        or        python -m evenflow.bench.recovery.chaos --minutes 10 --seed 7
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import evenflow as ef
from evenflow.testing.chaos.chaos import Chaos, Killer

from ...connectors.generated.generate import GeneratedRows
from ..baselines.spark import spark_session
from ..harness.background import Background
from ..harness.benchmark import Say
from ..harness.chaos import Outcome, disturb, disturbed_config, main, wait_until
from ..harness.jobs import cancelled
from .zombie_node import HEALTH, NODE, ZombieNode

NAME = "chaos"
EVERY = 5.0
DEMAND = (500, 1_500)
"""Rows per second, for `PHASE` seconds each."""

PHASE = 20
FEED_EVERY = 1.0
"""Seconds from one file of rows to the next. Spark takes a file at a time, up to twice as fast."""

SERVICE_SECONDS = 0.0002
"""T2's time for a row: one worker can do three times the mean demand, so the backlog of a restart shrinks fast."""

THRESHOLD = 1.8
"""A row of T2 is an alert if its value is above this multiple of the running mean of its key."""

MOST_WORKERS = 4
"""The most workers of one operator: it is scaled from one to this number, and back."""

PATIENCE = 45.0
QUERIES = 2
FAIL_SECONDS, FAIL_EVERY_SECONDS = 5.0, 0.01
END_SECONDS = 300.0
"""The time in which the job must catch up at the end, when nothing is killed any more."""

_ROWS = GeneratedRows(keys=500, zipf=1.1, string_keys=True, seed=7, start_time=1_700_000_000_000, event_rate=2_000.0, max_delay=200)
_SCHEMA = "key string, ts timestamp, value double, seq long"


class Feed(Background):
    """A context that puts a file of rows into `folder` every `every` seconds, atomically, for Spark's file source."""

    def __init__(self, folder: Path, every: float) -> None:
        super().__init__(every, "feed")
        self._folder, self._seconds = folder, every
        self.rows = 0
        self._files = 0

    def __enter__(self) -> Self:
        self._folder.mkdir()
        self._step()
        return super().__enter__()

    def _step(self) -> None:
        count = round(DEMAND[int(self._files * self._seconds) // PHASE % len(DEMAND)] * self._seconds)
        columns = _ROWS.columns(np.arange(self.rows, self.rows + count))
        columns["ts"] = columns["ts"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table(columns), self._folder / f".{self._files}")
        (self._folder / f".{self._files}").rename(self._folder / f"{self._files:05}.parquet")
        self.rows, self._files = self.rows + count, self._files + 1


def flow_of(spark: Any, folder: Path, trigger: str) -> ef.Dataflow:
    """Return T1 and T2 over the files in `folder/in`, into `folder/windows` and `folder/alerts`."""

    def stream(name: str) -> Any:
        df = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        return ef.from_spark(df, event_time="ts", max_delay="200ms", trigger=trigger, path=folder / name, name=name)

    def far_above(state: tuple[int, float] | None, row: dict[str, Any]) -> tuple[tuple[int, float], dict[str, Any] | None]:
        time.sleep(SERVICE_SECONDS)
        count, total = state or (0, 0.0)
        mean = total / count if count else row["value"]
        kept = {"key": row["key"], "seq": row["seq"], "mean": mean} if row["value"] > THRESHOLD * mean else None
        return (count + 1, total + row["value"]), kept

    flow = ef.Dataflow(NAME)
    windows = flow.read(stream("rows_of_windows")).key_by("key").window(ef.tumbling("1s"))
    counts = windows.aggregate(n=ef.count(), total=ef.sum("value")).named("counts")
    counts.write(ef.to_spark(path=folder / "windows", name="to_windows"))
    rows = flow.read(stream("rows_of_means")).parallelism(1, fixed=True)  # so that the order within a key is that of `seq`
    rows.key_by("key").stateful_map(far_above).named("means").write(ef.to_spark(path=folder / "alerts", name="to_alerts"))
    return flow


def config_of(folder: Path) -> ef.JobConfig:
    """Return a config with the balancer and the scaling policy on."""
    return disturbed_config(
        folder,
        interval="1s",
        parallelism=1,
        key_groups=64,
        metrics=ef.MetricsConfig(window="200ms"),
        balance=ef.BalanceConfig("hotspot", after="1s", cooldown="1s", rest="2s", least_busy=0.05),
        autoscale=ef.AutoscaleConfig("ds2", mode="act", interval="5s", max_parallelism=MOST_WORKERS),
    )


def run(
    spark: Any,
    folder: Path,
    seconds: float,
    *,
    every: float = EVERY,
    feed_every: float = FEED_EVERY,
    patience: float = PATIENCE,
    seed: int = 0,
    others: Mapping[str, Killer] | None = None,
    tend: Callable[[], None] = lambda: None,
    say: Say = print,
) -> Outcome:
    """Run the job for `seconds`, kill one of its processes every `every` seconds, and compare its results in `folder` with Spark's.

    Ray runs already; `folder` is empty. `feed_every`: seconds from one file of rows to the next. `patience`: how long a change waits for
    the job to recover. `others`: other accidents, as in `Chaos`; `tend` is called all the time meanwhile. Raises the job's error if it
    gives up, TimeoutError if it doesn't catch up in the end.
    """
    chance = random.Random(seed)  # noqa: S311 -- what is killed is no secret
    tend()
    with Feed(folder / "in", feed_every) as feed:
        job = flow_of(spark, folder, f"{round(500 * feed_every)}ms").run(runtime="ray", config=config_of(folder))
        with cancelled(job, END_SECONDS):
            chaos = Chaos(
                job, every=every, others={"Spark query": lambda: fail_query(spark, chance), **(others or {})},
                move=("counts", "means"), scale=("counts",), most_workers=MOST_WORKERS, patience=patience, seed=seed, say=say,
            )  # fmt: skip
            disturb(job, chaos, seconds, lambda: _all_happened(chaos), END_SECONDS, tend)
            wait_until(job, chaos.recovered, END_SECONDS)
            feed.stop()
            end_queries(spark, job)
            job.wait(END_SECONDS)
    return compare(spark, folder, feed.rows, chaos)


def _all_happened(chaos: Chaos) -> bool:
    return chaos.kinds <= {kill.kind for kill in chaos.kills} and chaos.zombies > 0


def end_queries(spark: Any, job: ef.Job) -> None:
    """Let Spark read the last file, then stop its queries, which ends the stream in order."""
    wait_until(job, lambda: len(spark.streams.active) == QUERIES, END_SECONDS)
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()


def fail_query(spark: Any, chance: random.Random) -> str | None:
    """Make one of Spark's queries fail at any point, and return its name; None if there is none, or if it ended otherwise."""
    queries = spark.streams.active
    if not queries:
        return None
    query = chance.choice(queries)
    deadline = time.monotonic() + FAIL_SECONDS
    while query.isActive and time.monotonic() < deadline:
        spark.sparkContext.cancelJobGroup(str(query.runId))  # each of its micro-batches is such a group of jobs
        time.sleep(FAIL_EVERY_SECONDS)
    return None if query.exception() is None else f"query {query.runId}"


def compare(spark: Any, folder: Path, rows: int, chaos: Chaos) -> Outcome:
    """Compare the job's output with Spark's batch result of the same files."""
    spark.read.schema(_SCHEMA).parquet(str(folder / "in")).createOrReplaceTempView("chaos_rows")
    before = "OVER (PARTITION BY key ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    means = f"SELECT key, seq, value, coalesce(sum(value) {before} / count(*) {before}, value) AS mean FROM chaos_rows"  # noqa: S608 -- our own words
    alerts = spark.sql(f"SELECT key, seq, mean FROM ({means}) WHERE value > {THRESHOLD}D * mean")  # noqa: S608 -- our own words
    windows = spark.sql(
        "SELECT key, w.start AS start, n, total FROM "
        "(SELECT key, window(ts, '1 second') AS w, count(*) AS n, sum(value) AS total FROM chaos_rows GROUP BY 1, 2)"
    )
    found = {
        "windows": (spark.read.parquet(str(folder / "windows")).selectExpr("key", "window_start AS start", "n", "total"), windows),
        "alerts": (spark.read.parquet(str(folder / "alerts")).select("key", "seq", "mean"), alerts),
    }
    missing = sum(expected.exceptAll(ours).count() for ours, expected in found.values())
    wrong = sum(ours.exceptAll(expected).count() for ours, expected in found.values())
    results = {what: ours.count() for what, (ours, _) in found.items()}
    return Outcome(rows, results, missing, wrong, frozenset(kill.kind for kill in chaos.kills), chaos.zombies, chaos.table())


def _run(folder: Path, given: argparse.Namespace, say: Say) -> Outcome:
    with ExitStack() as stack:
        cluster, spark = _start(folder)
        stack.callback(cluster.shutdown)
        stack.callback(_stop)
        node = ZombieNode(cluster, NAME, say)
        return run(
            spark, folder / "job", given.minutes * 60, every=given.every, seed=given.seed, others={"zombie coordinator": node.lose},
            tend=node.tend, say=say,
        )  # fmt: skip


def _start(folder: Path) -> tuple[Any, Any]:
    """Start a cluster with its first node, and a Spark session."""
    import ray
    from ray.cluster_utils import Cluster

    (folder / "job").mkdir()
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    head = {**NODE, "include_dashboard": False, "temp_dir": str(folder / "ray"), "_system_config": HEALTH}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray.init(cluster.address, logging_level=logging.ERROR, log_to_driver=False)
    settings = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(folder / "spark"), "spark.log.level": "OFF"}
    return cluster, spark_session("evenflow-chaos", **settings, **{"spark.ui.showConsoleProgress": "false"})


def _stop() -> None:
    import ray
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    ray.shutdown()


if __name__ == "__main__":
    sys.exit(main("T1 and T2 between Spark and Spark while their processes are killed", 10.0, EVERY, _run))
