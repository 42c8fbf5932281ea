"""Patterns on Ray: while workers join, leave and are killed, the matches are those of an undisturbed run over the same rows."""

from __future__ import annotations

from contextlib import suppress

import pytest
from comparing import in_order
from watching import await_rows, kill

import evenflow as ef
from evenflow.scheduler.protocol.reports import ScalingState

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is

RISE = [
    ef.step("low", ef.col("value") < 300),
    ef.step("mid", (ef.col("value") >= 300) & (ef.col("value") <= 600), times=(1, None)),
    ef.step("high", ef.col("value") > 600),
]


def build(source):
    """Return a flow, the rows of its source, and the matches."""
    flow, rows, matches = ef.Dataflow("rises"), [], []
    read = flow.read(source)
    read.write(ef.to_list(rows, name="to_rows"))
    read.key_by("key").pattern(RISE, within="2s", skip="past_last").named("rise").write(ef.to_list(matches, name="to_matches"))
    return flow, rows, matches


def test_matches_are_those_of_an_undisturbed_run_though_workers_join_leave_and_are_killed(tmp_path):
    flow, rows, matches = build(ef.generate(rate=400, every="50ms", keys=40, string_keys=True, max_delay="500ms"))
    config = ef.JobConfig(
        parallelism=1,
        key_groups=16,
        checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="500ms"),
        restart=ef.RestartConfig(delay="10ms", most=1_000),
        metrics=ef.MetricsConfig(window="200ms"),
    )
    job = flow.run(runtime="ray", config=config)

    try:
        await_rows(job, matches, 20)
        for workers in (3, 2):
            assert job.scale("rise", workers).state is ScalingState.DONE
            await_rows(job, matches, 20)
            kill(job, f"rise-{workers - 1}")
            await_rows(job, matches, 20)
        assert sum(report.keys_moved for report in job.scalings()) > 0
        job.stop(drain=True)
        job.wait("60s")
    finally:
        with suppress(ef.JobError):  # it has ended
            job.cancel()
    again, _, expected = build(ef.from_items(rows, event_time="ts", max_delay="5m"))
    again.run(runtime="local").wait("60s")
    assert in_order(matches) == in_order(expected)
