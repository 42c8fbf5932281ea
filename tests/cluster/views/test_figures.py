"""The figures of a running job: names, status, metrics, load, and the Prometheus endpoint."""

from __future__ import annotations

import urllib.request
from datetime import UTC, datetime

import pytest
import ray
from patience import patience
from prometheus_client.parser import text_string_to_metric_families
from watching import actor, actors, figures_of, until

import evenflow as ef

WORKERS = ("delays-0", "delays-1", "aggregate-0", "aggregate-1")


@pytest.fixture(scope="module")
def job(cluster):
    """Run a job that counts by a skewed key: a sixth of the records have key 0."""
    flow = ef.Dataflow("delays")
    delays = flow.read(ef.generate(rate=2_000, every="50ms", keys=1000, zipf=1.0, max_delay="1s", name="delays"))
    delays.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count()).write(ef.to_callback(lambda row: None))
    job = flow.run(
        parallelism=2,
        config=ef.JobConfig(
            combine=False,
            metrics=ef.MetricsConfig(window="200ms"),
            checkpoint=ef.CheckpointConfig(interval="1s"),
            worker=ef.WorkerConfig(keep="0s"),
        ),
    )
    until(lambda: all(figures.rows_in > 0 for figures in job.metrics()), "every worker has reported")
    yield job
    job.cancel()
    job.wait("60s")


@pytest.mark.first
def test_actors_have_readable_names(job):
    assert actors() == sorted(["delays/coordinator", *(f"delays/{worker}" for worker in WORKERS)])


@pytest.mark.first
def test_the_status_shows_state_workers_checkpoints_and_time(job):
    status = until(lambda: job.status() if job.status().completed_checkpoints else None, "a checkpoint is complete")
    assert (status.name, status.state.value, status.error, status.workers) == ("delays", "running", None, WORKERS)
    assert status.running_seconds > 0


@pytest.mark.first
def test_metrics_show_rates_shares_of_time_and_watermarks(job):
    shown = set()

    def look():
        """Check the figures. A busy machine's window may lack rows, or waits: every worker has one with all of them."""
        figures = job.metrics()
        assert tuple(f.worker for f in figures) == WORKERS
        for f in figures:
            assert 0 <= f.useful_share < 1
            assert 0 <= f.input_wait_share < 1
            assert f.useful_share + f.input_wait_share + f.backpressure <= 1
            assert f.refused_messages == f.late_records == 0
            if f.rows_in_per_second > 0 and f.useful_share > 0 and f.input_wait_share > 0:
                shown.add(f.worker)
        return shown.issuperset(WORKERS)

    until(look, "every worker has shown a rate, useful time and waits")
    first = datetime.min.replace(tzinfo=UTC)
    seen = figures_of(job, "aggregate")[0].watermark or first
    until(lambda: (figures_of(job, "aggregate")[0].watermark or first) > seen, "the watermark has risen")


def test_latency_marks_give_a_latency_where_the_stream_ends(job):
    p50, p99 = until(lambda: figures_of(job, "aggregate")[0].latency_ms, "latency marks have arrived")
    assert 0 < p50 <= p99 < 60_000
    assert figures_of(job, "delays")[0].latency_ms is None


@pytest.mark.first
def test_load_is_known_per_worker_key_group_and_hot_key(job):
    load = until(lambda: (load := job.load("aggregate")).hot_keys and load, "load has been reported")
    assert set(load.workers) == {"aggregate-0", "aggregate-1"}
    assert load.imbalance >= 1
    assert 2 < len(load.groups) <= 1024
    assert sum(load.groups.values()) == pytest.approx(sum(load.workers.values()), rel=0.5)
    assert load.hot_keys[0][0] == 0


def scraped(job):
    """Return the families that Prometheus reads, by name."""
    with urllib.request.urlopen(job.metrics_url, timeout=patience(60)) as response:
        return {family.name: family for family in text_string_to_metric_families(response.read().decode())}


@pytest.mark.first
def test_prometheus_can_read_the_figures(job):
    assert job.metrics_url.startswith("http://127.0.0.1:")
    until(lambda: scraped(job)["evenflow_latency_seconds"].samples, "latency marks have arrived")
    families = scraped(job)
    gauges = ["rows_in_per_second", "useful_share", "input_wait_share", "backpressure", "queued_batches", "state_bytes"]
    for name in ["rows_in", "rows_out", "late_records", "refused_messages", *gauges]:
        samples = families[f"evenflow_{name}"].samples
        assert {(s.labels["job"], s.labels["operator"], s.labels["worker"]) for s in samples} == {
            ("delays", worker.removesuffix("-0").removesuffix("-1"), worker) for worker in WORKERS
        }
    assert {sample.labels["quantile"] for sample in families["evenflow_latency_seconds"].samples} == {"0.5", "0.99"}
    assert families["evenflow_watermark_seconds"].samples


def test_prometheus_can_read_distributions(job):
    for name in ("checkpoint_seconds", "record_latency_seconds"):

        def counted(name=name):
            return [s for s in scraped(job)[f"evenflow_{name}"].samples if s.name.endswith("_count") and s.value > 0]

        (count,) = until(counted, f"{name} has been measured")
        assert count.labels["job"] == "delays"


def test_workers_run_at_normal_priority_and_load_nothing_heavy(job):
    def look(worker):
        import os
        import sys

        return os.nice(0), {"pyspark", "matplotlib", "duckdb"} & set(sys.modules)

    for worker in WORKERS:
        assert ray.get(actor(job, worker).__ray_call__.remote(look), timeout=patience(60)) == (0, set())
