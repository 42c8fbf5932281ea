"""The task's last events in protocol errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError
from evenflow.engine.protocol.elements import Barrier, End, Watermark
from evenflow.engine.task.core import TaskCore
from evenflow.engine.task.story import LENGTH, Story


def test_only_the_last_events_are_kept():
    story = Story()
    for number in range(LENGTH + 5):
        story.note(float(number), "switch", f"step {number}")
    lines = story.text().splitlines()
    assert len(lines) == LENGTH
    assert lines[0] == "5.000000 switch: step 5"


def test_a_batch_is_noted_by_its_number_of_rows():
    story = Story()
    story.note(0.0, "receive", Batch(pa.record_batch({"item": [1, 2]})), 3)
    assert story.text() == "0.000000 receive on channel 3: 2 rows"


def test_protocol_error_of_a_task_carries_its_story():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).parallelism(2).key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
    spec = next(task for task in flow.plan().tasks if task.name == "count-0")
    task = TaskCore(spec)
    task.open()
    task.receive(spec.inputs[0], Watermark(7), 0.25)
    task.receive(spec.inputs[1], End(), 0.5)
    with pytest.raises(ProtocolError) as caught:
        task.receive(spec.inputs[1], Barrier(1), 0.75)
    told = str(caught.value).splitlines()
    assert told[0].endswith(f"an element on channel {spec.inputs[1]}, which has ended or never was an input")
    assert [line.strip() for line in told[-3:]] == [
        f"0.250000 receive on channel {spec.inputs[0]}: Watermark(time=7)",
        f"0.500000 receive on channel {spec.inputs[1]}: End()",
        f"0.750000 receive on channel {spec.inputs[1]}: Barrier(checkpoint=1, base=0, last=False)",
    ]
