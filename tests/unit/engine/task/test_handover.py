"""Elements that a worker refuses while state moves; complete runs are in `tests/simulation/scenarios`."""

from __future__ import annotations

import pyarrow as pa
import pytest
from scenario import Scenario

from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError, RecordError
from evenflow.engine.keyed_state.base import StateTransfer
from evenflow.engine.protocol.elements import Barrier, Marker, TransferEnd, TransferStart, Watermark
from evenflow.engine.task import core, handover


@pytest.fixture
def job():
    """ann's group is announced to go from worker 0 to worker 1."""
    scenario = Scenario()
    scenario.run("job 2")
    scenario.run("announce sudden ann to 1")
    return scenario


def receive(job, sender, receiver, element):
    return job.tasks[receiver].receive(job.ids[sender, receiver], element, 0.0)


def test_marker_of_a_step_that_was_not_announced_is_refused(job):
    with pytest.raises(ProtocolError, match="operator `count`: a marker of step 7, which was not announced"):
        receive(job, "clicks-0", "count-0", Marker(7))


def test_step_happens_once(job):
    for command in ("switch clicks-0 1", "switch clicks-1 1", "settle"):
        job.run(command)
    with pytest.raises(ProtocolError, match="a marker of step 1, which was not announced"):
        receive(job, "clicks-0", "count-0", Marker(1))


def test_switch_to_a_step_that_was_not_announced_is_refused(job):
    with pytest.raises(ProtocolError, match="task clicks-0: step 2 was not announced"):
        job.tasks["clicks-0"].switch(2, 0.0)


def test_marker_at_an_operator_without_keyed_state_is_refused(job):
    with pytest.raises(ProtocolError, match="task sink-0: a marker arrived, but it has no keyed state"):
        receive(job, "count-0", "sink-0", Marker(1))


def test_state_that_belongs_to_no_move_is_refused(job):
    state = Batch(pa.record_batch({"user": ["ann"]}))
    with pytest.raises(ProtocolError, match="operator `count`: state arrived from worker 1, from which none is expected"):
        receive(job, "count-1", "count-0", state)


def test_end_of_another_step_is_refused(job):
    for sender in ("clicks-0", "clicks-1"):
        receive(job, sender, "count-1", Marker(1))
    receive(job, "count-0", "count-1", TransferStart(1, 0))
    with pytest.raises(ProtocolError, match="worker 0 has handed over step 2, expected step 1"):
        receive(job, "count-0", "count-1", TransferEnd(2))


@pytest.mark.parametrize("element", [Watermark(5), Barrier(1), Marker(1)], ids=lambda element: type(element).__name__)
def test_signal_for_records_is_refused_on_a_channel_for_state(job, element):
    with pytest.raises(ProtocolError, match=f"worker 0 sent a {type(element).__name__} on a channel for state"):
        receive(job, "count-0", "count-1", element)


def test_state_on_a_channel_for_records_is_refused(job):
    with pytest.raises(ProtocolError, match="task count-0: a TransferStart arrived on channel 0, which is for records"):
        receive(job, "clicks-0", "count-0", TransferStart(1, 0))


def test_state_that_can_not_travel_is_refused_by_operator_and_key(job):
    job.run("read clicks-0 ann")
    job.run("settle")
    job.tasks["count-0"].operators[0].state.backend.objects["ann"] = bytearray(2)
    for source in ("clicks-0", "clicks-1"):
        job.run(f"switch {source} 1")
    with pytest.raises(RecordError, match=r"(?s)operator `count`: the state can't be saved: `state` is a bytearray.*key: 'ann'"):
        job.run("settle")


def test_request_for_a_step_that_is_over_is_answered_by_its_end(job):
    for command in ("announce lazy bob to 1", "read clicks-0 bob", "settle", "switch clicks-0 2", "switch clicks-1 2", "read clicks-0 bob"):
        job.run(command)
    for command in ("deliver clicks-0 count-0 all", "deliver clicks-1 count-0 all", "deliver clicks-0 count-1 all", "give count-0"):
        job.run(command)
    job.run("give count-0")
    assert "keys bob" not in job.run("settle").splitlines()
    assert job.run("state").splitlines() == ["count-0: no state", "count-1: bob=2"]


def test_workers_that_take_no_part_in_a_step_forget_it():
    job = Scenario()
    for command in ("job 3", "announce sudden ann to 1", "switch clicks-0 1", "switch clicks-1 1", "settle"):
        job.run(command)
    kept = {name: len(task.handovers._steps) for name, task in job.tasks.items() if task.handovers is not None}
    assert kept == {"count-0": 0, "count-1": 0, "count-2": 0}


@pytest.fixture
def moving(monkeypatch):
    """ann's and eve's state has to go from worker 0 to worker 1, and their later records are at worker 1."""
    monkeypatch.setattr(handover, "CHUNK_BYTES", 1)
    monkeypatch.setattr(handover, "FIRST", 1)
    monkeypatch.setattr(core, "REPLAYED", 1)
    job = Scenario()
    for command in ("job 2", "announce sudden ann to 1", "read clicks-0 ann eve", "settle", "switch clicks-0 1", "switch clicks-1 1"):
        job.run(command)
    job.run("read clicks-0 ann eve")
    for channel in ("clicks-0 count-0", "clicks-1 count-0", "clicks-0 count-1", "clicks-1 count-1"):
        job.run(f"deliver {channel} all")
    return job


def test_state_leaves_between_batches_in_chunks_of_few_keys_if_their_states_are_large(moving):
    assert "count-0 -> count-1: transfer 1 starts" in moving.run("channels")
    given = [moving.run("give count-0") for _ in range(3)]
    assert sorted(given) == [f"count-0 -> count-1: {what}" for what in ("state ann=1", "state eve=1", "transfer 1 ends")]


class Slices(StateTransfer):
    """A transfer whose chunks are slices of one large batch."""

    def __init__(self, rows):
        self.left = Batch(pa.record_batch({"key": pa.array(range(rows)), "n": pa.array(range(rows))}))

    def next_chunk(self, keys):
        chunk, self.left = self.left.slice(0, min(keys, self.left.num_rows)), self.left.slice(keys, max(0, self.left.num_rows - keys))
        return chunk if chunk.num_rows else None

    def fetch(self, columns):
        return []


def test_rows_that_share_a_large_buffer_leave_in_chunks_as_large_as_others(moving, monkeypatch):
    monkeypatch.setattr(handover, "CHUNK_BYTES", 1 << 18)
    handovers = moving.tasks["count-0"].handovers
    (outgoing,) = handovers._outgoing
    outgoing.transfer = Slices(100_000)
    sizes = []
    while handovers.giving:
        handovers._out.clear()
        handovers.give_some()
        sizes.append(sum(sent.element.num_rows for sent in handovers._out if isinstance(sent.element, Batch)))
    assert set(sizes[1:-1]) == {handover.CHUNK}


def test_records_set_aside_are_processed_in_pieces_and_in_order(moving):
    for command in ("give count-0", "give count-0", "give count-0", "deliver count-0 count-1 all"):
        moving.run(command)
    assert moving.run("replay count-1") == "count-1 -> sink-0: results ann=2"
    moving.run("read clicks-0 eve eve")
    assert "results eve=2 eve=3 eve=4" in moving.run("deliver clicks-0 count-1 all"), "as many again as now wait"
    assert moving.run("state").splitlines()[1] == "count-1: ann=2 eve=4"


def test_key_that_has_come_in_the_background_is_not_requested(monkeypatch):
    monkeypatch.setattr(handover, "CHUNK", 1)
    job = Scenario()
    for command in ("job 2", "announce lazy ann to 1", "read clicks-0 ann eve", "settle", "switch clicks-0 1", "switch clicks-1 1"):
        job.run(command)
    job.run("settle")
    given = job.run("give count-0").rpartition(" ")[2].removesuffix("=1")
    job.run("settle")
    job.run(f"read clicks-0 {given}")
    assert f"results {given}=2" in job.run("deliver clicks-0 count-1 all")
