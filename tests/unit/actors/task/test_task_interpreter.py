"""A task's effects become calls on its ports, in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.actors.task.pacing import IDLE, Pacing
from evenflow.actors.task.task_interpreter import TaskInterpreter, own_error
from evenflow.actors.task.task_ports import TaskPorts
from evenflow.engine.batch import Batch
from evenflow.engine.errors import JobFailedError, ProtocolError, RecordError
from evenflow.engine.keys.encoding import key_hashes
from evenflow.engine.protocol.effects import Finished, Prepared
from evenflow.engine.protocol.elements import Barrier, End, FetchRequest, LatencyMark, Marker, TransferEnd, TransferStart, Watermark
from evenflow.engine.protocol.handover_step import Arrived, HandoverStep
from evenflow.engine.protocol.restored_keys import RestoredKeys
from evenflow.engine.protocol.routing import Move
from evenflow.engine.protocol.state_channels import state_channel
from evenflow.scheduler.protocol.messages import (
    Announce,
    Announced,
    ApplySettings,
    Attach,
    Attached,
    BeginCheckpoint,
    CheckpointFailed,
    Failed,
    PauseSource,
    ResumeSource,
    Shutdown,
    SourcePaused,
    StopSource,
    Switch,
    TakeSource,
)
from evenflow.scheduler.record.restoring.restored_task import RestoredChain, RestoredTask
from evenflow.state.errors import CorruptCheckpointError, CorruptStateError, StateBackendError
from evenflow.state.files import StateFile
from evenflow.testing.settings import changed
from evenflow.testing.simulation.workers import SimulatedMeter


class Ports:
    """Channels, clock, reports, writer and saved state in one; `calls` are the calls, `reports` separate."""

    busy = False

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.reports: list[Any] = []
        self.written: list[Any] = []
        self.chunks_of: dict[str, list[pa.RecordBatch]] = {}
        self.time = self.tick = 0.0

    def send(self, channel, element):
        self.calls.append(element.rows.column(0).to_pylist() if isinstance(element, Batch) else element)

    def consumed(self, channel, batch):
        self.calls.append(f"credit of {channel}")

    def now(self):
        self.time += self.tick
        return self.time

    def timestamp(self):
        return 1_000

    def write(self, checkpoint, chunk):
        self.calls.append(f"{chunk.num_rows} keys of checkpoint {checkpoint}")
        self.time += 0.01

    def finish(self, prepared):
        self.written.append(prepared)

    def take(self):
        return []

    def flush(self):
        written, self.written = self.written, []
        return written

    def close(self):
        self.calls.append("closed")

    def chunks(self, checkpoint, entry):
        if entry.path not in self.chunks_of:
            raise CorruptStateError(f"{entry.path} is gone")
        return self.chunks_of[entry.path]


def task_of(name: str, flow: ef.Dataflow, *, writes: bool = False, restored: RestoredTask | None = None, **config: Any):
    plan = flow.plan(config=changed(ef.JobConfig(combine=False, key_groups=4), **config))
    ports = Ports()
    spec = next(task for task in plan.tasks if task.name == name)
    task = TaskInterpreter(
        spec, TaskPorts(ports, ports, ports.reports.append, Pacing(0.0), SimulatedMeter, ports if writes else None, ports), restored
    )
    task.open()
    return task, ports


def counting() -> ef.Dataflow:
    flow = ef.Dataflow("f")
    items = flow.read(ef.from_items([1, 2, 3])).named("items").parallelism(1)
    items.key_by("item").aggregate(n=ef.count()).named("count").parallelism(2).write(ef.to_list([]))
    return flow


def rows(*values: object) -> Batch:
    return Batch(pa.record_batch({"item": pa.array(values)}))


def test_source_is_polled_with_a_mark_before_its_rows_and_ends_with_a_report():
    task, ports = task_of("items-0", counting())
    assert task.is_source
    assert task.poll(2, mark=True) == 2
    task.idle()
    assert LatencyMark(1_000) in ports.calls
    assert sorted(value for call in ports.calls if isinstance(call, list) for value in call) == [1, 2]
    assert (task.poll(2), task.poll(2)) == (1, 0)
    assert ports.calls[-2:] == [End(), End()]
    assert [type(report) for report in ports.reports] == [Finished]
    assert (task.over, task.is_source) == (True, False)


def test_checkpoint_of_a_source_says_where_it_was():
    task, ports = task_of("items-0", counting())
    task.poll(2)
    task.command(BeginCheckpoint(1, 0))
    assert ports.calls[-2:] == [Barrier(1), Barrier(1)]
    (prepared,) = ports.reports
    assert (prepared.checkpoint, prepared.position) == (1, task.source.position)
    assert prepared.position is not None


def test_command_for_a_source_changes_nothing_elsewhere():
    task, ports = task_of("count-0", counting())
    task.command(BeginCheckpoint(1, 0))
    task.command(StopSource())
    assert (ports.calls, ports.reports, task.over) == ([], [], False)


def test_a_paused_source_is_not_polled_and_resumes_at_the_position_that_it_is_given():
    task, ports = task_of("items-0", counting())
    task.poll(1)
    task.command(PauseSource(5))
    (paused,) = ports.reports
    assert (paused, task.is_source) == (SourcePaused(5, task.source.position), False)
    task.command(ResumeSource())
    assert task.is_source
    task.command(PauseSource(6))
    task.command(TakeSource(0, 1, paused.position))
    assert task.is_source
    assert task.poll(10) == 2
    task.command(TakeSource(0, 1, None))
    assert isinstance(ports.reports[-1], Finished), "nothing is left for it"


def test_batch_is_paid_back_to_the_channel_it_came_on():
    task, ports = task_of("count-0", counting(), network={"batch_rows": 1})
    task.receive(task.spec.inputs[0], rows(1))
    assert ports.calls == [f"credit of {task.spec.inputs[0]}", [1]]


def test_state_of_a_checkpoint_is_written_before_it_is_prepared():
    task, ports = task_of("count-0", counting(), writes=True, checkpoint={"dir": "somewhere"})
    task.receive(task.spec.inputs[0], rows(1, 2))
    task.receive(task.spec.inputs[0], Barrier(1))
    assert task.save(behind=True)
    assert ports.calls[-1] == "2 keys of checkpoint 1"
    assert ports.written == []
    assert not task.save(behind=True), "saving has a share of the time"
    ports.time += 1.0
    assert task.save(behind=True)
    assert not task.save(behind=True)
    assert (ports.written, ports.reports) == ([Prepared(1, {}, ports.written[0].watermark)], [])
    ports.take = lambda: [CheckpointFailed(1, "no room", {})]
    task.report_written()
    assert ports.reports == [CheckpointFailed(1, "no room", {})]


def test_checkpoint_that_is_not_written_yet_is_reported_before_the_end():
    task, ports = task_of("count-0", counting(), writes=True, checkpoint={"dir": "somewhere"})
    (channel,) = task.spec.inputs
    for element in (rows(1), Barrier(1), End()):
        task.receive(channel, element)
    assert [type(report) for report in ports.reports] == [Prepared, Finished]
    assert task.over


def test_error_is_reported_once_and_nothing_is_done_after_it():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1, 0])).named("items").map(lambda row: {"item": 1 // row["item"]}).write(ef.to_list([]))
    task, ports = task_of("items-0", flow)
    task.poll(10)
    (failed,) = ports.reports
    assert isinstance(failed.error, RecordError)
    assert (task.over, task.poll(10), task.save(behind=True), task.give()) == (True, 0, False, False)
    task.command(Announce(1, "items", ()))
    task.fail(ValueError("another"))
    assert ports.reports == [failed]


def test_protocol_error_lists_the_events_that_the_task_had_seen():
    task, ports = task_of("count-0", counting())
    task.receive(task.spec.inputs[0], Watermark(7))
    task.receive(4711, Watermark(9))
    (failed,) = ports.reports
    assert isinstance(failed.error, ProtocolError)
    assert "receive on channel 4711: Watermark(time=9)" in str(failed.error)


def test_steps_are_announced_before_they_are_switched_to():
    task, ports = task_of("items-0", counting())
    task.command(Announce(3, "count", (HandoverStep(1, (Move(0, 1, (0,)),)),)))
    assert ports.reports == [Announced(3)]
    task.command(Switch(1))
    assert ports.calls == [Marker(1), Marker(1)]
    task.command(Switch(2))
    (_, failed) = ports.reports
    assert isinstance(failed, Failed)
    assert "step 2 was not announced" in str(failed.error)


def task_that_took_state(*later):
    """Return a task that has taken the state of a step, for which it worked a while, its ports, and its input. `later`: later steps."""
    task, ports = task_of("count-1", counting())
    from_peer = state_channel(4711, task.spec.number)
    (channel,) = task.spec.inputs
    task.command(Announce(3, "count", (HandoverStep(1, (Move(0, 1, (0,)),)), *later), {"count-0": 4711}))
    task.receive(channel, Marker(1))
    ports.tick = 0.1
    task.receive(from_peer, TransferStart(1, 0))
    task.receive(from_peer, TransferEnd(1))
    ports.tick = 0.0
    return task, ports, channel


NEXT = HandoverStep(2, (Move(0, 1, (1,)),))


def test_complete_move_is_reported_after_a_rest_if_another_step_follows():
    task, ports, _ = task_that_took_state(NEXT)
    task.report_arrived()
    assert (task.resting, ports.reports) == (True, [Announced(3)])
    rests = []
    while task.resting:
        rests.append(task.sleep_for())
        ports.time += rests[-1]
        task.report_arrived()
    assert 0.0 < min(rests) <= max(rests) <= IDLE
    assert ports.reports[1:] == [Arrived(1, 0, 0, 0)]


@pytest.mark.parametrize("later", [(), (replace(NEXT, pause=True),)], ids=["last", "waited for"])
def test_complete_move_is_reported_at_once_if_someone_waits_for_it(later):
    task, ports, _ = task_that_took_state(*later)
    assert (task.resting, ports.reports[1:]) == (False, [Arrived(1, 0, 0, 0)])


def test_complete_move_is_reported_before_the_end():
    task, ports, channel = task_that_took_state(NEXT)
    task.receive(channel, End())
    assert [type(report) for report in ports.reports] == [Announced, Arrived, Finished]


def test_task_that_has_finished_still_answers_who_joins_and_who_asks_for_state():
    task, ports = task_of("count-0", counting())
    requests = state_channel(4711, task.spec.number)
    group = int(key_hashes([pa.array([1])], "count")[0] % 4)
    task.command(Announce(3, "count", (HandoverStep(1, (Move(0, 1, (group,)),), lazy=True),), {"count-1": 4711}))
    (channel,) = task.spec.inputs
    task.receive(channel, rows(1))
    task.receive(channel, End())
    assert task.task.finished
    ports.calls.clear()
    task.receive(requests, FetchRequest(1, 0))
    task.receive(requests, rows(1))
    assert f"credit of {requests}" in ports.calls
    assert not any(isinstance(report, Failed) for report in ports.reports)
    task.command(Attach(8))
    assert ports.reports[-1] == Attached(8, finished=True)


def test_shutdown_ends_it_without_a_report():
    task, ports = task_of("items-0", counting())
    task.command(Shutdown())
    assert (task.over, ports.reports, task.poll(10)) == (True, [], 0)


def test_task_goes_on_from_what_its_checkpoint_holds():
    flow = counting()
    table = flow.plan(config=ef.JobConfig(combine=False, key_groups=4)).tables["count"]
    restored = RestoredTask("", 3, watermark=50, chains=(RestoredChain(0, (StateFile("gone", 0, "", 0),)),), keys=RestoredKeys(table))
    task, ports = task_of("count-0", flow, restored=restored)
    (failed,) = ports.reports
    assert isinstance(failed.error, CorruptCheckpointError)
    assert (failed.error.worker, failed.error.checkpoint) == ("count-0", 3)
    assert task.task.watermark == 50


def test_everything_is_closed_once():
    task, ports = task_of("items-0", counting(), writes=True)
    task.close()
    task.close()
    assert ports.calls == ["closed"]
    assert task.source.reader is None


def test_foreign_error_becomes_one_that_any_process_can_read():
    error = KeyError("x")
    own = own_error(error, "w")
    assert isinstance(own, JobFailedError)
    assert str(own).startswith("worker w failed: KeyError: 'x'")
    assert own.__cause__ is error


def test_error_of_a_state_backend_stays_what_it_is():
    error = StateBackendError("the server is gone")
    assert own_error(error, "w") is error


def test_linger_that_changes_holds_for_rows_that_wait():
    task, ports = task_of("items-0", counting(), network={"linger": "60s"})
    task.poll(1)
    sent = len(ports.calls)
    ports.time += 2.0
    task.flush_if_due()
    assert len(ports.calls) == sent, "it waits for more rows"
    task.command(ApplySettings(1.0, None))
    task.flush_if_due()
    assert [1] in ports.calls[sent:]
