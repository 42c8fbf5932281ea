"""A rescale's phases: the commands and awaited answers of each, and its end when the stream ends before it."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.plan.rescale import rescale
from evenflow.engine.protocol.effects import Rewound
from evenflow.engine.protocol.routing import even_table
from evenflow.scheduler.protocol.messages import (
    Attach,
    Attached,
    Detach,
    ExpectRewind,
    PauseSource,
    ResumeSource,
    SourcePaused,
    TakeSource,
)
from evenflow.scheduler.record.rescaling import RescalePhase, RescaleState, Rescaling

NOBODY = frozenset()


class Change:
    """A rescale of one stage of read (2 workers) -> count (2 workers) -> out (1 worker), driven by hand."""

    def __init__(self, operator, workers):
        flow = ef.Dataflow("f")
        counts = flow.read(ef.from_items(range(10), name="read")).key_by("item").aggregate(n=ef.count()).named("count")
        counts.map(lambda row: row).named("out").parallelism(1).write(ef.to_list([]))
        plan = flow.plan(config=ef.JobConfig(parallelism=2, key_groups=4))
        stage = plan.stage_of(operator)
        tables = plan.tables | ({operator: even_table(4, min(workers, 2))} if stage.is_keyed else {})
        self.source = plan.stage_of("read").chain[0].operator.source
        self.finished = set()
        self.rescaling = Rescaling(
            plan, rescale(plan, stage, workers, tables), 0, number=0, state=RescaleState.RUNNING, reason="by the test", begun=1.0
        )

    def go(self, *, ready=(), running=True, free=True):
        """Return the commands until an answer is missing, None if one was missing at once."""
        commands, went = [], False
        while self.rescaling.phase is not RescalePhase.OVER:
            more = self.rescaling.advance(ready=ready, finished=frozenset(self.finished), running=running, free=free, now=5.0)
            if more is None:
                break
            commands, went = commands + more, True
        return commands if went else None

    def started(self):
        return self.go(ready=self.rescaling.rescale.joining)

    def answer(self, commands, finished=()):
        """Answer all commands."""
        for worker, command in commands:
            if isinstance(command, PauseSource):
                position = self.source.reader(int(worker[-1]), 2).position()
                self.rescaling.note(worker, SourcePaused(command.token, position, worker in finished))
            elif isinstance(command, (Attach, Detach, ExpectRewind)):
                self.rescaling.note(worker, Attached(command.token, worker in finished))


def receivers_of(commands, kind):
    return sorted(worker for worker, command in commands if isinstance(command, kind))


def test_a_worker_that_joins_is_started_first_then_channels_open_downstream_then_upstream():
    change = Change("count", 3)
    assert change.go() is None
    assert not change.rescaling.exclusive
    commands = change.started()
    assert change.rescaling.phase is RescalePhase.RECEIVERS
    assert receivers_of(commands, Attach) == ["out-0"]
    assert not change.rescaling.joined
    change.answer(commands)
    commands = change.go()
    assert change.rescaling.joined
    assert receivers_of(commands, Attach) == ["read-0", "read-1"]
    assert [len(command.outputs) for _, command in commands] == [1, 1]
    change.answer(commands)
    assert change.go() == []
    over = change.rescaling
    assert (over.state, over.begun, over.ended) == (RescaleState.DONE, 1.0, 5.0)
    assert [sum(task.stage == "count" for task in plan.tasks) for plan in (over.before, over.rescale.plan)] == [2, 3]


def test_it_waits_for_its_turn_until_nothing_else_is_under_way():
    change = Change("count", 3)
    change.go(ready=["count-2"], free=False)
    assert change.rescaling.phase is RescalePhase.TURN
    assert change.go(free=False) is None
    assert not change.rescaling.exclusive
    assert change.go()
    assert change.rescaling.exclusive


def test_one_missing_answer_holds_it_back_and_one_to_an_earlier_request_does_not_count():
    change = Change("read", 3)
    commands = change.started()
    change.answer(commands[1:])
    worker, command = commands[0]
    change.rescaling.note(worker, Attached(command.token - 1))
    assert change.go() is None
    change.rescaling.note(worker, Attached(command.token))
    assert change.go() is not None


def test_leaving_worker_is_detached_upstream_and_forgotten_by_its_peers_once_it_has_finished():
    change = Change("count", 1)
    commands = change.go()
    assert change.rescaling.phase is RescalePhase.LEAVING
    assert receivers_of(commands, Detach) == ["read-0", "read-1"]
    change.answer(commands)
    assert change.go() is None
    change.finished.add("count-1")
    commands = change.go()
    left = [task.number for task in change.rescaling.before.tasks if task.name == "count-1"]
    assert [(worker, list(command.peers)) for worker, command in commands] == [("count-0", left)]
    assert change.rescaling.state is RescaleState.DONE


def test_new_channels_of_an_abandoned_rescale_end_at_once_and_no_other_gives_way():
    flow = ef.Dataflow("f")
    left, right = (flow.read(ef.from_items(range(10), name=name)) for name in ("left", "right"))
    left.union(right).write(ef.to_list([]))
    plan = flow.plan(config=ef.JobConfig(parallelism=2))
    change = rescale(plan, plan.stage_of("union"), 1, {})
    rescaling = Rescaling(plan, change, 0, number=0, state=RescaleState.RUNNING, reason="by the test", begun=1.0)
    asked = {"ready": (), "finished": NOBODY, "running": True, "free": True, "now": 5.0}
    rescaling.advance(**asked)
    ((worker, command),) = rescaling.advance(**asked)
    rescaling.note(worker, Attached(command.token, finished=True))
    commands = rescaling.advance(**asked)
    assert [(worker, command.unused) for worker, command in commands] == [("left-1", True), ("right-1", True)]
    assert {type(command) for _, command in commands} == {Attach}
    assert rescaling.state is RescaleState.ENDED_EARLY


def test_a_source_is_paused_redistributed_and_done_once_all_after_it_have_its_event_times():
    change = Change("read", 3)
    change.answer(change.started())
    paused = change.go()
    assert receivers_of(paused, PauseSource) == ["read-0", "read-1"]
    change.answer(paused)
    expecting = change.go()
    assert receivers_of(expecting, ExpectRewind) == ["count-0", "count-1"]
    assert {len(command.channels) for _, command in expecting} == {3}
    change.answer(expecting)
    taken = change.go()
    assert [(worker, command.index, command.parallelism) for worker, command in taken] == [(f"read-{i}", i, 3) for i in range(3)]
    items = []
    for _, command in taken:
        reader = change.source.reader(command.index, command.parallelism)
        reader.seek(command.position)
        while (batch := reader.poll(100)) is not None:
            items += batch.rows["item"].to_pylist()
    assert sorted(items) == list(range(10))
    change.rescaling.note("count-0", Rewound())
    assert change.go() is None
    change.rescaling.note("count-1", Rewound())
    assert change.go() == []
    assert change.rescaling.state is RescaleState.DONE


def test_a_source_that_shrinks_ends_those_that_leave_once_their_part_is_read_by_others():
    change = Change("read", 1)
    change.answer(change.go())
    change.answer(change.go())
    taken = dict(change.go())
    assert (taken["read-0"].parallelism, taken["read-1"].position) == (1, None)
    for worker in ("count-0", "count-1"):
        change.rescaling.note(worker, Rewound())
    assert change.go() == []
    assert change.rescaling.phase is RescalePhase.LEAVING
    change.finished.add("read-1")
    change.go()
    assert change.rescaling.state is RescaleState.DONE


def test_source_with_a_worker_that_has_read_everything_continues_and_new_ones_read_nothing():
    change = Change("read", 3)
    change.answer(change.started())
    change.answer(change.go(), finished=["read-1"])
    commands = change.go()
    assert receivers_of(commands, ResumeSource) == ["read-0"]
    assert [(worker, command.position) for worker, command in commands if isinstance(command, TakeSource)] == [("read-2", None)]
    assert change.rescaling.state is RescaleState.DONE


def test_source_with_a_worker_that_has_read_everything_does_not_shrink():
    change = Change("read", 1)
    change.answer(change.go(), finished=["read-0"])
    assert receivers_of(change.go(), ResumeSource) == ["read-1"]
    assert change.rescaling.state is RescaleState.ENDED_EARLY


@pytest.mark.parametrize("phase", [RescalePhase.STARTING, RescalePhase.TURN])
def test_a_job_that_ends_before_its_turn_has_come_ends_it_early(phase):
    change = Change("count", 3)
    if phase is RescalePhase.TURN:
        change.go(ready=["count-2"], free=False)
    assert change.go(running=False) == []
    assert change.rescaling.state is RescaleState.ENDED_EARLY
    assert not change.rescaling.joined


def test_once_channels_are_being_opened_the_end_of_the_stream_does_not_stop_it():
    change = Change("count", 3)
    change.answer(change.started())
    change.answer(change.go(running=False))
    change.go(running=False)
    assert change.rescaling.state is RescaleState.DONE


def test_a_worker_downstream_that_has_finished_ends_those_that_joined_before_they_get_a_record():
    change = Change("read", 3)
    change.answer(change.started(), finished=["count-0"])
    commands = change.go()
    assert [(worker, command.position) for worker, command in commands] == [("read-2", None)]
    assert change.go() is None
    assert not change.rescaling.joined
    change.finished.add("read-2")
    assert change.go() == []
    assert change.rescaling.state is RescaleState.ENDED_EARLY
