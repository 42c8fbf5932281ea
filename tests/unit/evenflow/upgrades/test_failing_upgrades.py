"""New code that does badly, in jobs of this process: the old code goes on, live or from a checkpoint."""

from __future__ import annotations

import time

import pytest
from patience import until

import evenflow as ef

pytestmark = pytest.mark.slow

WINDOW = ef.MetricsConfig(window="100ms")


def shop(rows, version=1, *, fails=False, seconds=0.0, options=None):
    def add(total, row):
        if seconds:
            until_then = time.monotonic() + seconds
            while time.monotonic() < until_then:
                pass
        if fails and row["seq"] % 5 == 0:
            raise ValueError("no price")
        total = (total or 0) + 1
        return total, {"key": row["key"], "total": total, "version": version}

    flow = ef.Dataflow("shop")
    sales = flow.read(ef.generate(rate=1_000, every="5ms", keys=20, string_keys=True))
    sales.key_by("key").stateful_map(add, **(options or {})).named("totals").write(ef.to_list(rows))
    return flow


@pytest.fixture
def start(waiting_for_jobs, tmp_path):
    """Start jobs, which end with the test. Their handles sleep between polls, not the test."""
    jobs = []

    def started(rows, *, saves=True, **given):
        folder = tmp_path if saves else None
        config = ef.JobConfig(checkpoint=ef.CheckpointConfig(folder, interval="50ms"), metrics=WINDOW)
        jobs.append(shop(rows, **given).run(runtime="local", config=config))
        until(lambda: rows)
        return jobs[-1]

    yield started
    for job in jobs:
        job.cancel()


def ends_without_a_gap(job, rows):
    """Stop the job; return True if each key's totals are 1, 2, 3, ... to the last."""
    job.stop()
    job.wait("60s")
    totals = {}
    for row in rows:
        totals.setdefault(row["key"], []).append(row["total"])
    return all(sorted(found) == list(range(1, len(found) + 1)) for found in totals.values())


def test_new_code_that_raises_takes_the_job_back_to_its_checkpoint_with_the_old_code(start):
    job = start(rows := [])
    with pytest.raises(ef.UpgradeRolledBackError, match="no price") as caught:
        job.upgrade(shop(rows, 2, fails=True), watch="30s")
    assert caught.value.report.state is ef.UpgradeState.ROLLED_BACK
    until(lambda: job.status().state is ef.JobState.RUNNING)
    assert job.status().restarts == 1
    before = len(rows)
    until(lambda: len(rows) > before + 200)
    assert {row["version"] for row in rows[before + 100 :]} == {1}
    assert ends_without_a_gap(job, rows)


def test_new_code_that_raises_without_checkpoints_fails_the_job(start):
    job = start(rows := [], saves=False)
    with pytest.raises(ef.UpgradeRolledBackError):
        job.upgrade(shop(rows, 2, fails=True), watch="30s")
    with pytest.raises(ef.RecordError, match="no price"):
        job.wait("60s")


def test_slow_code_returns_its_keys_while_the_stream_runs(start):
    job = start(rows := [])
    with pytest.raises(ef.UpgradeRolledBackError, match=r"the new code takes .* for a batch of"):
        job.upgrade(shop(rows, 2, seconds=0.002), canary=0.3, watch="60s")
    assert job.status().restarts == 0
    assert ends_without_a_gap(job, rows)


def test_an_upgrade_that_is_aborted_returns_to_the_old_code(start):
    job = start(rows := [])

    def abort(report):
        if report.state is ef.UpgradeState.WATCHING:
            job.abort_upgrade()

    with pytest.raises(ef.UpgradeRolledBackError, match="it was aborted by hand"):
        job.upgrade(shop(rows, 2), watch="60s", seen=abort)
    assert job.status().restarts == 0
    with pytest.raises(ef.RequestError, match="no upgrade is under way"):
        job.abort_upgrade()
    assert ends_without_a_gap(job, rows)


NEWER = {"state_version": 2, "migrate_state": lambda version, state: state}


def test_no_checkpoint_completes_before_the_decision_if_the_old_code_cannot_read_the_state(start):
    job = start(rows := [])
    completed = []

    def watch(report):
        if report.state is ef.UpgradeState.WATCHING:
            completed.append(job.status().completed_checkpoints)

    job.upgrade(shop(rows, 2, options=NEWER), watch="1s", seen=watch)
    assert len(set(completed)) == 1
    until(lambda: job.status().completed_checkpoints > completed[0])
    assert ends_without_a_gap(job, rows)
    assert {row["version"] for row in rows} == {1, 2}


def test_state_that_the_old_code_cannot_read_needs_checkpoints_or_no_canary(start):
    job = start(rows := [], saves=False)
    with pytest.raises(ef.RequestError, match=r"give the job a place for them, CheckpointConfig\(dir=...\), or say canary=0"):
        job.upgrade(shop(rows, 2, options=NEWER))
    assert job.upgrade(shop(rows, 2, options=NEWER), canary=0).state is ef.UpgradeState.DONE
    assert ends_without_a_gap(job, rows)
