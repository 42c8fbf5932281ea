"""A job on Ray scales its operators to the demand, and no further; its results stay the same."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import count as count_from

import pytest
import ray
from patience import patience
from watching import actor, until

import evenflow as ef

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is

COST = 0.043
"""Seconds that a record takes, in the windows by which the policy decides."""

DEMAND, DOUBLED = 37.5, 75.0
"""Records per second, in these windows. They take 1.6 and 3.2 workers."""

LOOKS = 5
"""The number of the policy's looks to wait for. If it changes nothing in these, it has settled."""


def recorded(doubled):
    """Return a function that makes the coordinator's policy see recorded windows, not those of a busy machine."""

    def feed(coordinator):
        from evenflow.scheduler.load.window import WorkerWindow

        autoscaling = coordinator._coordinator._interpreter.core.autoscaling
        autoscaling.looks = 0

        def windows(worker):
            """Two of ten seconds each: the source reads what its receivers can take, and its backlog grows by the rest."""
            demand = DOUBLED if doubled.exists() else DEMAND
            workers = sum(name.startswith("count-") for name in autoscaling._job.workers)
            read = min(demand, workers / COST)
            if worker.startswith("count-"):
                rows = int(read * 10 / workers)
                useful = rows * COST
                figures = {"rows_in": rows, "useful": useful, "wait_input": 10 - useful}
                return [WorkerWindow(worker, start, 10.0, **figures) for start in (0.0, 10.0)]
            autoscaling.looks += 1
            figures = {"rows_in": int(read * 10), "rows_out": int(read * 10), "useful": 0.1}
            return [WorkerWindow(worker, start, 10.0, backlog=int((demand - read) * start), **figures) for start in (0.0, 10.0)]

        autoscaling._fresh = windows

    return feed


def counted(results):
    """Count the records of each key; the source states no rate."""

    def count(state, row):
        n = (state or 0) + 1
        return n, {**row, "n": n}

    def numbers(partition, position):
        for seq in count_from(position or 0):
            yield {"key": seq * 7919 % 400, "seq": seq}, seq + 1
            if seq % 10 == 9:
                yield None

    flow = ef.Dataflow("rising")
    flow.read(ef.from_generator(numbers)).key_by("key").stateful_map(count).named("count").write(ef.to_list(results))
    return flow


def check(results):
    """Assert that each record occurs once, and that every key is counted without a gap in the order of its records."""
    seqs = [row["seq"] for row in results]
    assert sorted(seqs) == list(range(len(seqs)))
    counts = Counter()
    for row in sorted(results, key=lambda row: row["seq"]):
        counts[row["key"]] += 1
        assert row["n"] == counts[row["key"]], row


def test_ds2_finds_the_workers_for_the_demand_and_again_when_it_doubles_and_stays(tmp_path):
    results, doubled = [], tmp_path / "doubled"
    config = ef.JobConfig(
        key_groups=64,
        checkpoint=ef.CheckpointConfig(interval="500ms"),
        metrics=ef.MetricsConfig(window="200ms"),
        autoscale=ef.AutoscaleConfig(mode="act", interval="1s", max_parallelism=6),
    )
    job = counted(results).run(runtime="ray", config=config)

    def of_coordinator(function):
        return ray.get(actor(job, "coordinator").__ray_call__.remote(function), timeout=patience(60))

    def looks():
        return of_coordinator(lambda coordinator: coordinator._coordinator._interpreter.core.autoscaling.looks)

    def workers():
        return sum(name.startswith("count-") for name in job.status().workers)

    def decided():
        return [record.decided.parallelism["count"] for record in job.decisions() if record.decided.parallelism]

    try:
        of_coordinator(recorded(doubled))
        job.autoscaler("ds2", mode="act")
        until(lambda: workers() == 2, "two workers are there for the demand")
        doubled.touch()
        until(lambda: workers() == 4, "four workers are there for the doubled demand")
        until(lambda: job.decisions()[-1].done != "under way", "the decision is carried out")
        seen, rows = looks(), len(results)
        until(lambda: looks() >= seen + LOOKS and len(results) > rows, "the stream goes on, and the policy looks at it")
        assert decided() == [2, 4], [(record.decided.reason, record.done) for record in job.decisions()]
        job.stop(drain=True)
        job.wait("60s")
    finally:
        with suppress(ef.JobError):  # it has ended
            job.cancel()
    check(results)
    assert [(report.before, report.after) for report in job.scalings()] == [(1, 2), (2, 4)]
