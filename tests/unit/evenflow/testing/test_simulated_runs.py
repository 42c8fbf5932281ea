"""A run is a function of its seed, ends within bounds, and otherwise reports what it waits for."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.protocol.elements import End
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import Cancel, Stop
from evenflow.testing import ACTIONS, Choice, SimulationError, simulate


def windows(sink=None):
    flow = ef.Dataflow("windows")
    rows = flow.read(ef.generate(total=40, keys=3, event_rate=10.0))
    rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count()).write(sink if sink is not None else ef.to_list([]))
    return flow


def asks(what, when=lambda core: True):
    """Return an action that calls `what` with the job's interpreter once, at any time at which `when` holds."""
    done = []

    def ask(coordinator):
        done.append(True)
        what(coordinator.interpreter)

    def action(world):
        if not done and when(world.coordinator.core):
            yield Choice("a user", "ask", ask, (world.coordinator,))

    return action


def test_seed_decides_everything():
    first, again, other = simulate(windows(), 3), simulate(windows(), 3), simulate(windows(), 4)
    assert first == again
    assert first.actions != other.actions


def test_sinks_of_the_flow_are_left_alone():
    rows = []
    result = simulate(windows(ef.to_list(rows, name="mine")), 1)
    assert rows == []
    assert sum(row["n"] for row in result.rows["mine"]) == 40


def test_checkpoints_complete_while_the_stream_runs():
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(interval="1ms"), network=ef.NetworkConfig(batch_rows=2))
    assert max(simulate(windows(), seed, config=config).checkpoints for seed in range(60)) > 3


def test_seeds_meet_messages_that_overtake_each_other_and_slow_workers():
    kinds = set()
    for seed in range(10):
        kinds |= set(simulate(windows(), seed).actions)
    assert kinds >= {"start", "receive", "poll", "flush", "obey", "report", "store", "deploy", "deliver", "pass time"}


@pytest.mark.parametrize("seed", range(20))
def test_job_that_is_stopped_at_any_time_finishes_with_whole_rows(seed):
    flow = ef.Dataflow("stopped")
    rows = flow.read(ef.generate(total=60, keys=3))
    rows.write(ef.to_list([], name="rows"))
    rows.key_by("key").aggregate(n=ef.count(), emit="final").write(ef.to_list([], name="counts"))
    result = simulate(flow, seed, actions=(*ACTIONS, asks(lambda job: job.ask(Stop(drain=True)))))
    assert result.state is JobState.FINISHED
    assert sum(row["n"] for row in result.rows["counts"]) == len(result.rows["rows"]) <= 60


@pytest.mark.parametrize("seed", range(10))
def test_job_that_is_cancelled_at_any_time_ends(seed):
    result = simulate(windows(), seed, actions=(*ACTIONS, asks(lambda job: job.ask(Cancel()))))
    assert result.state in {JobState.CANCELLED, JobState.FINISHED}


def test_worker_that_is_lost_fails_the_job():
    def lose(job):
        job.lost("aggregate-0", "its process died")

    lost = asks(lose, when=lambda core: core.state is JobState.RUNNING)
    with pytest.raises(ef.JobError, match="worker aggregate-0, which runs aggregate, to_list, is gone: its process died"):
        simulate(windows(), 5, actions=(*ACTIONS, lost))


def test_error_of_a_function_is_raised_with_the_seed():
    flow = ef.Dataflow("fails")
    flow.read(ef.from_items([1, 0])).map(lambda row: 1 // row["item"]).write(ef.to_list([]))
    with pytest.raises(ef.RecordError, match="operator `map`") as caught:
        simulate(flow, 11)
    assert any("simulate(flow, seed=11, parallelism=2, ...)" in note for note in caught.value.__notes__)


def test_end_that_is_lost_is_a_standstill_that_says_who_waits_for_whom():
    def lose_end(world):
        for channel in world.channels.values():
            if channel.elements and isinstance(channel.elements[-1], End):
                yield Choice("accident", "lose", channel.elements.pop)

    with pytest.raises(SimulationError, match=r"(?s)the job `windows`, running, is stuck.*aggregate-0 waits for") as caught:
        simulate(windows(), 2, actions=(*ACTIONS, lose_end))
    assert any(note.startswith("last steps: ") for note in caught.value.__notes__)


def test_source_that_never_ends_is_bounded():
    flow = ef.Dataflow("endless")
    flow.read(ef.generate()).write(ef.to_list([]))
    with pytest.raises(
        SimulationError, match=r"the job `endless`, running, has not ended within 300 steps\n  generate-0 waits for its source"
    ):
        simulate(flow, 1, max_steps=300)


def test_elements_that_remain_on_a_channel_are_found():
    def add_behind_the_end(world):
        for channel in world.channels.values():
            if channel.ended:
                yield Choice("accident", "send", channel.send, (End(),))

    with pytest.raises(SimulationError, match=r"sent aggregate-\d End\(\) behind the end"):
        simulate(windows(), 2, actions=(*ACTIONS, add_behind_the_end))


def test_given_configuration_is_kept():
    result = simulate(windows(), 1, parallelism=3, config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval=None)))
    assert result.checkpoints == 0
    assert sum(row["n"] for row in result.rows["to_list"]) == 40
