"""Operators scaled from one worker to four, two and three while the stream runs: the result equals Spark's of the same rows."""

from __future__ import annotations

import pytest
from driving import far_above_the_mean, wait_until

import evenflow as ef

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is

STEPS = (4, 2, 3)
RATE = 5_000


def stream(flow):
    source = ef.generate(
        rate=RATE, every="50ms", keys=500, zipf=1.1, string_keys=True, event_rate=2_000, max_delay="200ms", start_time=10_000
    )
    return flow.read(source).parallelism(1)


def run_scaled(flow, *operators):
    """Run the flow, scale every operator through all steps, and stop the stream."""
    config = ef.JobConfig(
        parallelism=1, key_groups=64, checkpoint=ef.CheckpointConfig(interval="500ms"), metrics=ef.MetricsConfig(window="200ms")
    )
    job = flow.run(runtime="ray", config=config)
    try:
        wait_until(lambda: all(figures.rows_in for figures in job.metrics()), "every operator has taken rows")
        for workers in STEPS:
            for operator in operators:
                job.scale(operator, workers)
        for operator in operators:
            assert {f"{operator}-{i}" for i in range(STEPS[-1])} <= set(job.status().workers)
        taken = sum(figures.rows_in for figures in job.metrics())
        wait_until(lambda: sum(figures.rows_in for figures in job.metrics()) > taken + RATE, "the stream goes on")
        job.stop(drain=True)
        job.wait("60s")
    finally:
        job.cancel()
    assert [(scaling.operator, scaling.after) for scaling in job.scalings()] == [(o, n) for n in STEPS for o in operators]


def assert_same_rows(found, expected):
    assert found.count() == expected.count() > 0
    assert found.exceptAll(expected).count() == 0


def rows_read(spark, folder):
    """Return the source's rows until it was stopped: every row up to its workers' last position, once."""
    rows = spark.read.parquet(str(folder))
    count, distinct, first_missing = rows.selectExpr("count(*)", "count(DISTINCT seq)", "min(seq)").first()
    assert count == distinct > RATE
    assert first_missing == 0
    return rows


def test_windowed_counts_and_sums_equal_sparks_while_source_operator_and_sinks_are_scaled(cluster, spark, tmp_path):
    flow = ef.Dataflow("scaled-windows")
    rows = stream(flow)
    rows.write(ef.write_parquet(tmp_path / "rows", name="to_rows"))
    windows = rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("value"))
    windows.named("counts").write(ef.write_parquet(tmp_path / "out"))
    run_scaled(flow, "generate", "counts")
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("key", "unix_millis(window_start) AS start", "n", "total")
    groups = rows_read(spark, tmp_path / "rows").selectExpr("key", "ts - ts % 1000 AS start", "value").groupBy("key", "start")
    expected = groups.agg({"*": "count", "value": "sum"}).selectExpr("key", "start", "`count(1)` AS n", "`sum(value)` AS total")
    assert_same_rows(found, expected)


def test_rows_far_above_the_running_mean_equal_sparks_while_workers_join_and_leave(cluster, spark, tmp_path):
    flow = ef.Dataflow("scaled-means")
    rows = stream(flow)  # one reader: the order within a key is that of `seq`
    rows.write(ef.write_parquet(tmp_path / "rows", name="to_rows"))
    rows.key_by("key").stateful_map(far_above_the_mean()).named("means").write(ef.write_parquet(tmp_path / "out"))
    run_scaled(flow, "means")
    before = "OVER (PARTITION BY key ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    rows_read(spark, tmp_path / "rows").createOrReplaceTempView("read")
    means = spark.sql(f"SELECT key, seq, value, sum(value) {before} / count(*) {before} AS mean FROM read")
    expected = means.where("value > 1.8D * mean").select("key", "seq", "mean")
    assert_same_rows(spark.read.parquet(str(tmp_path / "out")).select("key", "seq", "mean"), expected)
