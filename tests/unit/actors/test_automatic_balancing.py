"""A whole skewed job in this process that balances itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from patience import until

import evenflow as ef
from evenflow.engine.keys.encoding import key_hashes
from evenflow.engine.protocol.routing import even_table
from evenflow.scheduler.protocol.reports import MigrationState

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

KEY_GROUPS = 64


def first_worker_keys():
    """Return keys that the first table of two workers assigns to worker 0, so that worker 1 is idle."""
    keys = np.arange(1000)
    return keys[even_table(KEY_GROUPS, 2).owners(key_hashes([pa.array(keys)], "test")) == 0].tolist()


def count(state, row):
    return (state or 0) + 1, None


@pytest.fixture
def job():
    """Run an endless job with all keys on worker 0."""
    keys = first_worker_keys()
    flow = ef.Dataflow("skewed")
    rows = flow.read(ef.generate(keys=len(keys), rows_per_batch=1024)).map(lambda row: {"key": keys[row["key"]]})
    rows.key_by("key").stateful_map(count).write(ef.to_callback(lambda row: None))
    config = ef.JobConfig(
        parallelism=2,
        key_groups=KEY_GROUPS,
        metrics=ef.MetricsConfig(window="100ms"),
        balance=ef.BalanceConfig("off", after="300ms", least_busy=0.01),
    )
    job = flow.run(runtime="local", config=config)
    yield job
    job.cancel()
    job.wait("30s")


def test_a_skewed_job_is_balanced_once_a_balancer_is_switched_on(job):
    until(lambda: job.load("stateful_map", windows=1).imbalance > 1.5)  # the first windows may hold the start of both workers
    assert job.migrations() == []
    job.balancer("stateful_map", "hotspot")
    report = until(lambda: [report for report in job.migrations() if report.state is MigrationState.DONE])[0]
    assert report.reason.startswith("hotspot, automatic: worker 0 has 2.00 times the mean load")
    assert report.keys_moved > 0
    assert report.plan is not None
    assert report.plan.imbalance_after < 1.1
    until(lambda: job.snapshot("stateful_map").imbalance < 1.2)


def test_balancing_can_be_switched_off_again(job):
    job.balancer("stateful_map", "hotspot")
    job.balancer("stateful_map", "off")
    until(lambda: all(report.state in (MigrationState.DONE, MigrationState.ENDED_EARLY) for report in job.migrations()))
    before, rows = len(job.migrations()), sum(figures.rows_in for figures in job.metrics())
    until(lambda: sum(figures.rows_in for figures in job.metrics()) > rows + 200_000)
    assert len(job.migrations()) == before


def test_a_balancer_that_is_not_there_is_refused(job):
    with pytest.raises(ef.RequestError, match="'warmspot' can't balance a job: use hotspot, lpt, off"):
        job.balancer("stateful_map", "warmspot")
    with pytest.raises(ef.RequestError, match="operator `generate` has no keyed state to move"):
        job.balancer("generate", "hotspot")
