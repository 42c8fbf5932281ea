"""A rebalance every second while a few hundred thousand rows pass leaves what Spark makes of the same rows in a batch."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import cycle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driving import wait_until

import evenflow as ef

ROWS, RATE = 240_000, 30_000
STRATEGIES = ("sudden", "lazy", "batched", "pause", "fluid")


def rows(**options):
    several = {"total": ROWS, "every": "10ms", "keys": 500, "zipf": 1.1, "string_keys": True, "event_rate": 20_000, "max_delay": "200ms"}
    return ef.generate(**several, start_time=10_000, **options)


@pytest.fixture(scope="module")
def same_rows(spark, tmp_path_factory):
    """What the source gives, as a table of Spark."""
    folder = tmp_path_factory.mktemp("rows")
    reader, batches = rows().reader(0, 1), []
    while not reader.finished:
        batch = reader.poll(ROWS)
        batches += [batch.rows] if batch is not None else []
    pq.write_table(pa.Table.from_batches(batches), folder / "rows.parquet")
    return spark.read.parquet(str(folder))


def rebalanced_every_second(flow, operator):
    """Run the flow; how many migrations moved keys."""
    config = ef.JobConfig(parallelism=2, key_groups=64, checkpoint_interval="1s", metrics_window="200ms")
    job = flow.run(runtime="ray", config=config)
    wait_until(lambda: any(group.load for group in job.snapshot(operator).key_groups), "load was measured")
    for policy, strategy in zip(cycle(("lpt", "consistent", "hotspot")), cycle(STRATEGIES)):
        with suppress(ef.JobError):  # the stream may end at any time
            job.rebalance(operator, policy=policy, strategy=strategy)
        if job.status().state.final:
            break
        time.sleep(1)
    job.wait("60s")
    return sum(report.keys_moved > 0 for report in job.migrations())


def assert_same_rows(found, expected):
    assert found.count() == expected.count() > 0
    assert found.exceptAll(expected).count() == 0


def test_windowed_counts_and_sums_are_those_of_spark(cluster, spark, same_rows, tmp_path):
    flow = ef.Dataflow("windows")
    windows = flow.read(rows(rate=RATE)).key_by("key").window(ef.tumbling("1s"))
    windows.aggregate(n=ef.count(), total=ef.sum("value")).named("counts").write(ef.write_parquet(tmp_path / "out"))
    assert rebalanced_every_second(flow, "counts") >= 3
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("key", "unix_millis(window_start) AS start", "n", "total")
    groups = same_rows.selectExpr("key", "ts - ts % 1000 AS start", "value").groupBy("key", "start")
    expected = groups.agg({"*": "count", "value": "sum"}).selectExpr("key", "start", "`count(1)` AS n", "`sum(value)` AS total")
    assert_same_rows(found, expected)


def test_rows_far_above_the_running_mean_of_their_key_are_those_of_spark(cluster, spark, same_rows, tmp_path):
    def far_above(state, row):
        n, total = state or (0, 0.0)
        mean = total / n if n else row["value"]
        kept = {"key": row["key"], "seq": row["seq"], "mean": mean} if row["value"] > 1.8 * mean else None
        return (n + 1, total + row["value"]), kept

    flow = ef.Dataflow("means")
    stream = flow.read(rows(rate=RATE)).parallelism(1).key_by("key")  # one reader: the order within a key is that of `seq`
    stream.stateful_map(far_above).named("means").write(ef.write_parquet(tmp_path / "out"))
    assert rebalanced_every_second(flow, "means") >= 3
    before = "OVER (PARTITION BY key ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    means = same_rows.selectExpr("key", "seq", "value", f"sum(value) {before} / count(*) {before} AS mean")
    expected = means.where("value > 1.8D * mean").select("key", "seq", "mean")
    assert_same_rows(spark.read.parquet(str(tmp_path / "out")).select("key", "seq", "mean"), expected)
