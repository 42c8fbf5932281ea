"""The job without processes takes all of its changes, and every part of it has a figure."""

from __future__ import annotations

from evenflow.bench.wide.crowd import KEY_GROUPS, KEYED, Crowd
from evenflow.bench.wide.loads import Loads
from evenflow.bench.wide.measures import live_second
from evenflow.bench.wide.run import BENCHMARK, measured
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import Scale, TakeCheckpoint


def test_the_crowd_answers_a_checkpoint_and_a_rescale():
    crowd = Crowd(2, 3, key_groups=64)
    assert crowd.core.state is JobState.RUNNING
    crowd.ask(TakeCheckpoint())
    crowd.until(lambda: crowd.core.checkpoints.completed == 1)
    crowd.ask(Scale(KEYED, 4))
    crowd.settle()
    assert len(crowd.workers) == 4
    assert set(crowd.core.migrations.tables[KEYED].groups.tolist()) == {0, 1, 2, 3}


def test_every_worker_reports_once_in_a_second():
    crowd = Crowd(2, 3, key_groups=64)
    live_second(crowd, Loads(64))
    assert [len(crowd.core.record.metrics.history(worker)) for worker in (*crowd.sources, *crowd.workers)] == [1] * 5
    assert crowd.received > 0


def test_each_part_of_a_job_has_a_figure():
    given = BENCHMARK.parse(["--workers", "2", "--sources", "2", "--seconds", "1"])
    names = {name for name, _, value in measured(2, given, Loads(KEY_GROUPS)) if value > 0}
    assert {"reports", "balance plan", "routing of a batch", "checkpoint", "migration", "rescale", "view", "top"} <= names
