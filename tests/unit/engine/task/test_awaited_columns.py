"""A join that has to know the columns of both sides, while keys move to it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.joins.sides import LEFT, RIGHT
from evenflow.engine.protocol.effects import Sent
from evenflow.engine.protocol.elements import Marker, Watermark
from evenflow.engine.protocol.handover_step import HandoverStep
from evenflow.engine.protocol.routing import Move, even_table
from evenflow.engine.protocol.state_channels import is_state_channel
from evenflow.engine.task.core import TaskCore

LEFT_INPUT, RIGHT_INPUT = 0, 1


class Join:
    """Both workers of a full join; the plan doesn't know the right side's columns. Worker 1 gets all keys of worker 0."""

    def __init__(self):
        flow = ef.Dataflow("f")
        left, right = (flow.read(ef.from_items([{"k": 1, "ts": 1_000, "n": 1}], event_time="ts")) for _ in range(2))
        left.key_by("k").join(right.map(lambda row: row).key_by("k"), ef.between(0, "1s"), how="full").parallelism(2).write(ef.to_list([]))
        plan = flow.plan(config=ef.JobConfig(parallelism=1))
        specs = [next(spec for spec in plan.tasks if spec.name == name) for name in ("join-0", "join-1")]
        self.old, self.new = workers = [TaskCore(spec) for spec in specs]
        step = HandoverStep(1, (Move(0, 1, tuple(np.flatnonzero(even_table(plan.key_groups, 2).groups == 0).tolist())),))
        numbers = {spec.name: spec.number for spec in specs}
        for worker in workers:
            worker.open()
            worker.announce("join", [step], numbers)

    def hand_over(self):
        """Send the marker on every input, and the state that leaves thereupon."""
        effects = [effect for channel in self.old.spec.inputs for effect in self.old.receive(channel, Marker(1), 0.0)]
        for channel in self.new.spec.inputs:
            self.new.receive(channel, Marker(1), 0.0)
        while self.old.giving:
            effects += self.old.give(0.0)
        for effect in effects:
            if isinstance(effect, Sent) and is_state_channel(effect.channel):
                self.new.receive(effect.channel, effect.element, 0.0)


def rows(side):
    return side.tag(Batch(pa.record_batch({"k": [1], "ts": [1_000], "n": [1]}), np.array([1_000_000])), ("k",))


def observe(worker, time):
    for channel in worker.spec.inputs:
        worker.receive(channel, Watermark(time), 0.0)
    return worker.watermark


def test_new_owner_does_not_wait_for_columns_that_its_state_has_brought():
    join = Join()
    for channel, side in zip(join.old.spec.inputs, (LEFT, RIGHT), strict=True):
        join.old.receive(channel, rows(side), 0.0)
    assert observe(join.old, 2_000_000) == 2_000_000
    join.hand_over()
    assert observe(join.new, 3_000_000) == 3_000_000


def test_new_owner_waits_for_columns_that_are_not_known():
    join = Join()
    join.old.receive(join.old.spec.inputs[LEFT_INPUT], rows(LEFT), 0.0)
    assert observe(join.old, 2_000_000) < 0
    join.hand_over()
    assert observe(join.new, 3_000_000) < 0
    join.new.receive(join.new.spec.inputs[RIGHT_INPUT], rows(RIGHT), 0.0)
    assert join.new.watermark == 3_000_000
