"""Rebalances in sequence while a hundred thousand rows pass: the result equals Spark's of the same rows in a batch.

The stream is endless, so that no test depends on how soon keys have moved: Spark reads the rows emitted until the job was stopped.
"""

from __future__ import annotations

from itertools import cycle

import pytest
from driving import far_above_the_mean, wait_until

import evenflow as ef

RATE = 20_000
BETWEEN = 20_000
"""The rows that pass between two rebalances."""

STRATEGIES = ("sudden", "lazy", "batched", "pause", "fluid")

pytestmark = pytest.mark.timeout(300)  # a busy machine takes its time for so many rows


@pytest.fixture(scope="module")
def folder(cluster, tmp_path_factory):
    """Run a job whose two operators are rebalanced by every strategy while rows pass; return its input and output."""
    folder = tmp_path_factory.mktemp("rebalanced")
    flow = ef.Dataflow("rebalanced")
    several = {"every": "50ms", "keys": 500, "zipf": 1.1, "string_keys": True, "event_rate": 20_000, "max_delay": "200ms"}
    rows = flow.read(ef.generate(rate=RATE, **several, start_time=10_000)).parallelism(1)  # the order within a key is that of `seq`
    rows.write(ef.write_parquet(folder / "rows", name="to_rows"))
    windows = rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("value"))
    windows.named("counts").write(ef.write_parquet(folder / "counts", name="to_counts"))
    rows.key_by("key").stateful_map(far_above_the_mean()).named("means").write(ef.write_parquet(folder / "means", name="to_means"))
    run_rebalanced(flow, ("counts", "means"))
    return folder


def run_rebalanced(flow, operators):
    """Run the flow, rebalance the operators by every strategy while rows pass, and stop the stream."""
    config = ef.JobConfig(
        parallelism=2,
        key_groups=64,
        checkpoint=ef.CheckpointConfig(interval="1s"),
        metrics=ef.MetricsConfig(window="200ms"),
        balance=ef.BalanceConfig("off"),
    )
    job = flow.run(runtime="ray", config=config)

    def taken():
        return sum(figures.rows_in for figures in job.metrics() if figures.operator == "generate")

    try:
        for policy, strategy in zip(cycle(("lpt", "hotspot")), STRATEGIES, strict=False):
            before = taken()
            wait_until(lambda before=before: taken() > before + BETWEEN, "rows pass")
            for operator in operators:
                wait_until(lambda operator=operator: any(group.load for group in job.snapshot(operator).key_groups), "load was measured")
                job.rebalance(operator, policy=policy, strategy=strategy)
        job.stop(drain=True)
        job.wait("60s")
    finally:
        job.cancel()
    for operator in operators:
        reports = [report for report in job.migrations() if report.operator == operator]
        assert [report.strategy for report in reports] == list(STRATEGIES)
        assert sum(report.keys_moved > 0 for report in reports) >= 3


def rows_read(spark, folder):
    """Return the source's rows until it was stopped: every row up to there, once."""
    rows = spark.read.parquet(str(folder / "rows"))
    count, distinct, first, last = rows.selectExpr("count(*)", "count(DISTINCT seq)", "min(seq)", "max(seq)").first()
    assert count == distinct == last + 1 > BETWEEN * len(STRATEGIES)
    assert first == 0
    return rows


def assert_same_rows(found, expected):
    assert found.count() == expected.count() > 0
    assert found.exceptAll(expected).count() == 0


def test_windowed_counts_and_sums_are_those_of_spark(spark, folder):
    found = spark.read.parquet(str(folder / "counts")).selectExpr("key", "unix_millis(window_start) AS start", "n", "total")
    groups = rows_read(spark, folder).selectExpr("key", "ts - ts % 1000 AS start", "value").groupBy("key", "start")
    expected = groups.agg({"*": "count", "value": "sum"}).selectExpr("key", "start", "`count(1)` AS n", "`sum(value)` AS total")
    assert_same_rows(found, expected)


def test_rows_far_above_the_running_mean_of_their_key_are_those_of_spark(spark, folder):
    before = "OVER (PARTITION BY key ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    rows_read(spark, folder).createOrReplaceTempView("read")
    means = spark.sql(f"SELECT key, seq, value, sum(value) {before} / count(*) {before} AS mean FROM read")
    expected = means.where("value > 1.8D * mean").select("key", "seq", "mean")
    assert_same_rows(spark.read.parquet(str(folder / "means")).select("key", "seq", "mean"), expected)
