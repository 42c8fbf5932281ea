"""Keyed state moves between the workers of a job on Ray while its stream runs; its results are those of the same flow without
moves.

The sources are endless, so that no test depends on when a move happens: the rows emitted until the job was stopped are run again,
undisturbed.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from comparing import assert_same
from patience import patience
from watching import until

import evenflow as ef
from evenflow.scheduler.protocol.reports import MigrationState

STRATEGIES = ("sudden", "fluid", "batched", "pause", "lazy")
OPERATORS = ("numbered", "updates", "totals", "windows")


def build(name, source, operators):
    """Build a flow with the chosen kinds of keyed state; return it with the results by operator and the source's rows."""

    def numbered(state, row):  # inside, so that it travels to workers, which don't find this module
        n = (state or 0) + 1
        return n, {"key": row["key"], "n": n}

    flow, results = ef.Dataflow(name), {operator: [] for operator in ("rows", *operators)}
    rows = flow.read(source)
    rows.write(ef.to_list(results["rows"], name="to_rows"))
    keyed = rows.key_by("key")
    outputs = {
        "numbered": lambda: keyed.stateful_map(numbered),
        "updates": lambda: keyed.aggregate(n=ef.count(), total=ef.sum("value")),
        "totals": lambda: keyed.aggregate(n=ef.count(), total=ef.sum("value"), high=ef.max("seq"), emit="final"),
        "windows": lambda: keyed.window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("value")),
    }
    for operator in operators:
        outputs[operator]().named(operator).write(ef.to_list(results[operator], name=f"to_{operator}"))
    return flow, results


def endless(name, operators=OPERATORS, zipf=1.0):
    source = ef.generate(rate=2_000, every="50ms", keys=200, zipf=zipf, string_keys=True, max_delay="500ms", event_rate=1_000)
    flow, results = build(name, source, operators)
    config = ef.JobConfig(
        parallelism=2,
        key_groups=16,
        checkpoint=ef.CheckpointConfig(interval="500ms"),
        metrics=ef.MetricsConfig(window="200ms"),
        balance=ef.BalanceConfig("off"),
    )
    job = flow.run(runtime="ray", config=config)
    until(lambda: len(results["rows"]) > 1_000, "rows have been committed")
    return job, results


def stop_and_check(job, results):
    """Compare with a run of the same rows without moves."""
    job.stop(drain=True)
    job.wait("60s")
    operators = [operator for operator in results if operator != "rows"]
    flow, expected = build("again", ef.from_items(results["rows"], event_time="ts", max_delay="500ms"), operators)
    flow.run(runtime="local").wait("60s")
    assert_same(results, expected)


@pytest.mark.first
def test_state_of_every_kind_moves_by_every_strategy_in_mid_stream_and_the_results_stay():
    job, results = endless("moved")
    for number, strategy in enumerate(STRATEGIES):
        for operator in OPERATORS:
            report = job.migrate(operator, groups=range(2, 14), to=(number + 1) % 2, strategy=strategy)
            assert report.state is MigrationState.DONE
            assert report.steps_done == report.steps > 0
            assert report.groups >= 6
            if operator != "windows":  # between two windows there may be nothing to move
                assert report.keys_moved > 10
                assert report.state_bytes > 100
    before = len(results["rows"])
    until(lambda: len(results["rows"]) > before, "the stream goes on")
    stop_and_check(job, results)


def test_job_is_rebalanced_from_here_and_from_another_process(cluster):
    job, results = endless("balanced", ("numbered", "windows"), zipf=1.3)
    for policy in ("hotspot", "lpt"):
        for operator in ("numbered", "windows"):
            until(lambda operator=operator: any(load.load for load in job.snapshot(operator).key_groups), "load was measured")
            report = job.rebalance(operator, policy=policy)
            assert report.state is MigrationState.DONE
            assert report.plan is not None
            assert report.reason.startswith(policy)
    script = """
import evenflow as ef
job = ef.connect("balanced")
moved = job.migrate("numbered", groups=range(8), to=0, strategy="lazy")
back = job.migrate("numbered", groups=range(16), to=1, strategy="fluid")
balanced = job.rebalance("windows")
print(moved.state.value, back.state.value, back.keys_moved > 10, balanced.state.value, len(job.migrations()))
"""
    command = [sys.executable, "-W", "ignore", "-c", script]
    environment = os.environ | {"RAY_ADDRESS": cluster}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=patience(110), check=False)
    assert found.stdout.split() == ["done", "done", "True", "done", "7"], found.stderr
    assert [report.operator for report in job.migrations()][-3:] == ["numbered", "numbered", "windows"]
    stop_and_check(job, results)


def test_hot_key_gets_a_route_of_its_own_and_its_load_follows():
    job, results = endless("hot", ("numbered",), zipf=2.0)

    def hottest():
        keys = job.snapshot("numbered").hot_keys
        return max(keys, key=lambda key: key.load) if keys else None

    hot = until(hottest, "the hottest key is known")
    home = next(group.worker for group in job.snapshot("numbered").key_groups if group.group == hot.group)
    report = job.migrate("numbered", keys=[hot.key], to=1 - home)
    assert (report.groups, report.routed_keys, report.keys_moved) == (0, 1, 1)

    def has_moved():
        snapshot = job.snapshot("numbered")
        loads = snapshot.worker_loads()
        return any(key.key == hot.key and key.worker == 1 - home for key in snapshot.hot_keys) and loads[1 - home] > loads[home]

    until(has_moved, "its new worker is the hotter one")
    stop_and_check(job, results)


@pytest.mark.first
def test_wrong_requests_are_refused_and_the_job_runs_on():
    job, results = endless("refused", ("totals",))
    for words, ask in {
        "has no operator `totalz`; there are: ": lambda: job.migrate("totalz", groups=[0], to=1),
        "operator `totals` has no worker 2: its 2 workers are 0 to 1": lambda: job.migrate("totals", groups=[0], to=2),
        "operator `totals` has no key group 16: its groups are 0 to 15": lambda: job.migrate("totals", groups=[16], to=1),
        "'smooth' is not a migration strategy: use one of": lambda: job.migrate("totals", groups=[0], to=1, strategy="smooth"),
        "the strategy restart goes through a checkpoint": lambda: job.rebalance("totals", strategy="restart"),
        "coldspot": lambda: job.rebalance("totals", policy="coldspot"),
    }.items():
        with pytest.raises(ef.RequestError, match=words):
            ask()
    assert job.migrations() == []
    stop_and_check(job, results)
    with pytest.raises(ef.JobNotRunningError):
        job.migrate("totals", groups=[0], to=1)
