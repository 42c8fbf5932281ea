"""Workers of simulated jobs that stand in a function for seconds: the status names them, and the rows are the same."""

from __future__ import annotations

from collections import Counter

import pytest
from flows import running_updates, tumbling_windows, union_and_branches

from evenflow.scheduler.load.long_call import LONG_SECONDS, LongCall
from evenflow.scheduler.load.wait import WaitKind
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ShowStatus
from evenflow.testing import check
from evenflow.testing.simulation.actions import ACTIONS, Choice, OfWorker, report

TIMES = 2
"""The most functions of a run that do not return for seconds."""


def in_functions(world):
    waits = world.coordinator.ask(ShowStatus()).waits_for
    return [wait.worker for wait in waits if wait.kind is WaitKind.FUNCTION]


def with_standing(named):
    """Return the actions of a job whose workers sometimes stand in a function. `named`: counts the states of jobs that named one."""
    since, times = {}, Counter()

    def unless_standing(action):
        return OfWorker(lambda worker, world: [] if worker in since else action.choices_of(worker, world))

    def stand(worker, world):
        since[worker] = world.now
        times[id(world)] += 1
        worker.choices = None

    def leave(worker, world):
        worker.long_call = LongCall(world.now - since.pop(worker), "slow", ("slow (job.py:1)",))
        core = world.coordinator.core
        expected = core.state in (JobState.RUNNING, JobState.STOPPING) and worker.name not in core.record.finished
        assert in_functions(world) == ([worker.name] if expected else [])
        named[core.state] += expected
        worker.long_call = worker.choices = None
        assert in_functions(world) == []

    def standing(world):
        for worker in world.workers.values():
            if worker in since:
                if world.now - since[worker] >= LONG_SECONDS:
                    yield Choice(worker.name, "leave", leave, (worker, world))
            elif not since and worker.started and not worker.over and times[id(world)] < TIMES and world.random.random() < 0.05:
                yield Choice(worker.name, "stand", stand, (worker, world))

    own = tuple(unless_standing(each) if isinstance(each, OfWorker) and each is not report else each for each in ACTIONS)
    return *own, standing


@pytest.mark.few(1)
@pytest.mark.parametrize("make_flow", [tumbling_windows, running_updates, union_and_branches], ids=lambda flow: flow.__name__)
def test_standing_workers_are_named_and_the_rows_are_those_of_the_oracle(make_flow):
    named = Counter()
    for seed in range(6):
        check(make_flow, [seed], parallelism=(1, 2, 3), actions=with_standing(named))
    assert named[JobState.RUNNING] >= 3
