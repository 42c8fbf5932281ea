"""The code of jobs on Ray is exchanged while their streams run, also while processes are lost; every row has its place once."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

import pytest
from comparing import assert_same
from patience import patience
from watching import await_rows, pid, until

import evenflow as ef

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is

SOURCE = {"keys": 100, "zipf": 1.0, "string_keys": True, "max_delay": "500ms", "event_rate": 500}
OPERATORS = ("numbered", "visits", "windows")


def build(name, source, results, version):
    """Build a flow; the versions do the same in other ways, but for version 3, which fails."""

    def first(state, row):
        n = (state or 0) + 1
        return n, {"key": row["key"], "n": n}

    def second(state, row):
        n = 1 if state is None else state + 1
        return n, {"n": n, "key": row["key"]} | {"key": row["key"]}

    def third(state, row):
        raise ValueError("version 3 has a bug")

    class Visits(ef.KeyedFunction):
        n = ef.value_state(0)

        def on_row(self, key, row, context):
            self.n += 1
            return [{"key": key, "n": self.n}]

    class VisitsFromOneThousand(ef.KeyedFunction):
        """Counts from 1,000, so that a migration that is missing or repeated shows."""

        state_version = 2
        n = ef.value_state(1_000)

        def migrate_state(self, version, state):
            return {"n": state.get("n", 0) + 1_000}

        def on_row(self, key, row, context):
            self.n += 1
            return [{"key": key, "n": self.n - 1_000}]

    flow = ef.Dataflow(name)
    rows = flow.read(source)
    rows.filter(lambda row: True).named("kept").write(ef.to_list(results["rows"], name="to_rows"))
    keyed = rows.key_by("key")
    outputs = {
        "numbered": keyed.stateful_map((first, second, third, second)[version - 1]),
        "visits": keyed.process((Visits, VisitsFromOneThousand)[version == 4]()),
        "windows": keyed.window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("value")),
    }
    for operator, output in outputs.items():
        output.named(operator).write(ef.to_list(results[operator], name=f"to_{operator}"))
    return flow


@pytest.fixture(autouse=True)
def _no_job_outlives_a_failed_test(nothing_outlives_its_test):
    """End the jobs of a test that fails."""


@contextmanager
def endless(name, tmp_path):
    """Run version 1; on leaving, compare all rows with a run of the same rows whose code is never exchanged."""
    results = {operator: [] for operator in ("rows", *OPERATORS)}

    def flow(version):
        return build(name, ef.generate(rate=1_000, every="50ms", **SOURCE), results, version)

    checkpoint, restart = ef.CheckpointConfig(str(tmp_path), interval="500ms"), ef.RestartConfig(delay="10ms")
    metrics, patient = ef.MetricsConfig(window="200ms"), ef.WorkerConfig(heartbeat_timeout=patience(10))
    config = ef.JobConfig(parallelism=1, key_groups=16, checkpoint=checkpoint, restart=restart, metrics=metrics, worker=patient)
    job = flow(1).run(config=config)
    try:
        await_rows(job, results["rows"], 500)
        yield job, flow, results["rows"]
        await_rows(job, results["rows"], 500)
        job.stop(drain=True)
        job.wait("60s")
    finally:
        if not job.status().state.final:
            job.cancel()
    assert sorted(row["seq"] for row in results["rows"]) == list(range(len(results["rows"])))
    expected = {operator: [] for operator in results}
    build(name, ef.from_items(results["rows"], event_time="ts", max_delay="5m"), expected, 1).run(runtime="local").wait("60s")
    assert_same(results, expected)


def upgraded(job, flow, seen=lambda report: None, **options):
    return job.upgrade(flow, seen=seen, timeout="3m", **{"canary": 0.2, "watch": patience(2), "max_slowdown": 1e6, **options})


@pytest.mark.first
def test_code_is_exchanged_in_mid_stream_and_a_bug_is_taken_back(tmp_path):
    with endless("upgraded", tmp_path) as (job, flow, rows):
        report = upgraded(job, flow(2))
        assert report.operators == ("numbered",)
        assert [one.operator for one in report.compared] == ["numbered"]
        await_rows(job, rows, 100)
        with pytest.raises(ef.UpgradeRolledBackError, match="version 3 has a bug"):
            upgraded(job, flow(3))
        await_rows(job, rows, 100)
        assert {name for name in job.status().workers if name.startswith("numbered")} == {"numbered-0v2"}


def test_new_workers_that_are_killed_while_they_are_watched_take_the_new_code_with_them(tmp_path):
    with endless("watched", tmp_path) as (job, flow, rows):
        killed = []

        def kill(report):
            if report.state is ef.UpgradeState.WATCHING and not killed:
                killed.append(pid(job, "numbered-1v2"))
                os.kill(killed[0], signal.SIGKILL)

        with pytest.raises(ef.UpgradeRolledBackError, match="numbered-1v2"):
            upgraded(job, flow(2), kill, watch="1m")
        await_rows(job, rows, 100)
        until(lambda: job.status().state is ef.JobState.RUNNING, "it runs again")
        assert "numbered-0" in job.status().workers
        assert upgraded(job, flow(2), canary=0).state is ef.UpgradeState.DONE


def test_coordinator_that_is_killed_after_the_decision_goes_on_with_migrated_state(tmp_path):
    with endless("decided", tmp_path) as (job, flow, rows):
        changes = job.plan_upgrade(flow(4))
        assert not changes.can_go_back("visits")
        killed = []

        def kill(report):
            if report.state is ef.UpgradeState.ROLLING and not killed:
                killed.append(pid(job, "coordinator"))
                os.kill(killed[0], signal.SIGKILL)

        with pytest.raises(ef.RequestError, match="its coordinator was lost"):
            upgraded(job, flow(4), kill)
        assert killed
        await_rows(job, rows, 100)
        until(lambda: not job.plan_upgrade(flow(4)).changed_stages, "the job runs the new code")
        assert {name.rpartition("v")[2] for name in job.status().workers if name.startswith(("visits", "numbered"))} == {"2"}


def test_coordinator_that_is_killed_before_the_decision_goes_on_with_the_old_code(tmp_path):
    with endless("undecided", tmp_path) as (job, flow, rows):
        killed = []

        def kill(report):
            if report.state is ef.UpgradeState.WATCHING and not killed:
                killed.append(pid(job, "coordinator"))
                os.kill(killed[0], signal.SIGKILL)

        with pytest.raises(ef.RequestError, match="its coordinator was lost"):
            upgraded(job, flow(4), kill, watch="1m")
        await_rows(job, rows, 100)
        until(lambda: not job.plan_upgrade(flow(1)).changed_stages, "the job runs the old code")


def test_new_workers_get_an_environment_of_their_own_also_after_a_loss(tmp_path):
    def priced(row):
        return {"seq": row["seq"], "list": os.environ.get("PRICE_LIST")}

    flow, rows = ef.Dataflow("environment"), []
    flow.read(ef.generate(rate=500, keys=5)).map(priced).write(ef.to_list(rows))
    checkpoint, restart = ef.CheckpointConfig(str(tmp_path), interval="200ms"), ef.RestartConfig(delay="10ms")
    job = flow.run(parallelism=1, config=ef.JobConfig(checkpoint=checkpoint, restart=restart))
    try:
        await_rows(job, rows, 10)
        report = upgraded(job, flow, canary=0, runtime_env={"env_vars": {"PRICE_LIST": "summer"}})
        assert report.operators == ("generate",)
        until(lambda: rows[-1]["list"] == "summer", "the new workers have their environment")
        os.kill(pid(job, "generate-0v2"), signal.SIGKILL)
        await_rows(job, rows, 500)
        job.stop(drain=True)
        job.wait("60s")
    finally:
        if not job.status().state.final:
            job.cancel()
    assert sorted(row["seq"] for row in rows) == list(range(len(rows)))
    assert [row["list"] for row in sorted(rows, key=lambda row: row["seq"])][-1] == "summer"
    assert {row["list"] for row in rows} == {None, "summer"}
