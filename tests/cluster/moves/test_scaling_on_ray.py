"""Workers join and leave a job on Ray while its stream runs; its results equal those of the same rows without scaling."""

from __future__ import annotations

from contextlib import contextmanager, suppress

import pytest
from comparing import assert_same
from watching import actors, until

import evenflow as ef
from evenflow.scheduler.protocol.reports import ScalingState
from evenflow.testing.settings import changed

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is

OPERATORS = ("numbered", "totals", "updates", "windows")


def build(name, source, operators):
    """Build a flow with the chosen kinds of keyed state; return it with the results by operator and the source's rows."""

    def numbered(state, row):  # inside, so that it travels to workers, which don't find this module
        n = (state or 0) + 1
        return n, {"key": row["key"], "n": n}

    flow, results = ef.Dataflow(name), {operator: [] for operator in ("rows", *operators)}
    rows = flow.read(source)
    rows.filter(lambda row: True).named("kept").parallelism(2).write(ef.to_list(results["rows"], name="to_rows"))
    keyed = rows.key_by("key")
    outputs = {
        "numbered": lambda: keyed.stateful_map(numbered),
        "totals": lambda: keyed.aggregate(n=ef.count(), total=ef.sum("value"), high=ef.max("seq"), emit="final"),
        "updates": lambda: keyed.aggregate(n=ef.count(), total=ef.sum("value")),
        "windows": lambda: keyed.window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("value")),
    }
    for operator in operators:
        outputs[operator]().named(operator).write(ef.to_list(results[operator], name=f"to_{operator}"))
    return flow, results


@contextmanager
def endless(name, operators=OPERATORS, **settings):
    source = ef.generate(rate=1_000, every="50ms", keys=200, zipf=1.0, string_keys=True, max_delay="500ms", event_rate=500)
    flow, results = build(name, source, operators)
    config = changed(
        ef.JobConfig(
            parallelism=1, key_groups=16, checkpoint=ef.CheckpointConfig(interval="500ms"), metrics=ef.MetricsConfig(window="200ms")
        ),
        **settings,
    )
    job = flow.run(runtime="ray", config=config)
    try:
        until(lambda: len(results["rows"]) > 500, "rows have been committed")
        yield job, results
    finally:
        with suppress(ef.JobError):  # it has ended
            job.cancel()


def stop_and_check(job, results):
    """Compare with a run of the same rows that is never scaled."""
    before = len(results["rows"])
    until(lambda: len(results["rows"]) > before, "the stream goes on")
    job.stop(drain=True)
    job.wait("60s")
    assert sorted(row["seq"] for row in results["rows"]) == list(range(len(results["rows"])))
    operators = [operator for operator in results if operator != "rows"]
    flow, expected = build("again", ef.from_items(results["rows"], event_time="ts", max_delay="5m"), operators)
    flow.run(runtime="local").wait("60s")
    assert_same(results, expected)


def workers_of(job, operator):
    return sorted(name for name in job.status().workers if name.startswith(f"{operator}-"))


@pytest.mark.first
def test_keyed_operators_source_and_sink_are_scaled_in_mid_stream_and_the_results_stay():
    changes = (("numbered", 3), ("generate", 2), ("windows", 2), ("numbered", 2), ("kept", 1), ("numbered", 3), ("generate", 1))
    with endless("scaled") as (job, results):
        for operator, workers in changes:
            report = job.scale(operator, workers)
            assert (report.state, report.after) == (ScalingState.DONE, workers)
            assert workers_of(job, operator) == [f"{operator}-{i}" for i in range(workers)]
        assert [(report.operator, report.after) for report in job.scalings()] == list(changes)
        assert all(report.keys_moved > 0 for report in job.scalings() if report.operator == "numbered")
        until(lambda: len(actors()) == len(job.status().workers) + 1, "no process is left but the workers' and the coordinator's")
        stop_and_check(job, results)


def test_job_runs_on_without_room_for_new_workers_and_a_smaller_scaling_right_after_works():
    with endless("crowded", ("numbered",), worker={"cpus": 0.3}) as (job, results):
        there = len(job.status().workers)
        room = int((2 - there * 0.3) / 0.3)
        with pytest.raises(ef.JobError, match=r"scaling `numbered` .* to 10 workers has failed: no room for \d of 9 workers: each needs"):
            job.scale("numbered", 10)
        (report,) = job.scalings()
        assert report.state is ScalingState.FAILED
        assert workers_of(job, "numbered") == ["numbered-0"]
        job.scale("numbered", 1 + room)
        assert len(job.status().workers) == there + room
        stop_and_check(job, results)
