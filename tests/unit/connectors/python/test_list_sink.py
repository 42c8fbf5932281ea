from __future__ import annotations

import pickle

import msgpack
import pyarrow as pa
import pytest

from evenflow.connectors.python.list_sink import to_list
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ConnectorError, FlowError


def batch(**columns):
    return Batch(pa.record_batch(columns))


def deliver(sink, payloads):
    for payload in msgpack.unpackb(msgpack.packb(payloads)):
        sink.deliver(payload)


def test_rows_of_all_workers_arrive_with_their_checkpoint():
    rows = [{"n": 0}]
    sink = to_list(rows)
    sink.start()
    writers = [sink.writer(index, 2) for index in range(2)]
    writers[0].write(batch(n=[1]))
    writers[1].write(batch(n=[2]))
    assert rows == [{"n": 0}]
    deliver(sink, sink.commit(1, [part for writer in writers for part in writer.prepare(1)]))
    assert rows == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_batches_of_different_schemas_keep_their_order():
    rows = []
    sink = to_list(rows)
    writer = sink.writer(0, 1)
    for columns in ({"n": [1]}, {"word": ["a"]}, {"n": [2]}):
        writer.write(batch(**columns))
    deliver(sink, sink.commit(1, writer.prepare(1)))
    assert rows == [{"n": 1}, {"word": "a"}, {"n": 2}]


def test_a_checkpoint_that_is_committed_again_is_delivered_once():
    rows = []
    sink = to_list(rows)
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    committables = writer.prepare(3)
    deliver(sink, sink.commit(3, committables) + sink.commit(3, committables))
    assert rows == [{"n": 1}]


def test_rows_of_later_checkpoints_are_cut_off_and_come_again():
    rows = [{"n": 0}]
    sink = to_list(rows)
    sink.start()
    writer = sink.writer(0, 1)
    for n in (1, 2, 3):
        writer.write(batch(n=[n]))
        deliver(sink, sink.commit(n, writer.prepare(n)))
    for _ in range(2):
        deliver(sink, sink.retract(1))
        assert rows == [{"n": 0}, {"n": 1}]
    writer.write(batch(n=[4]))
    committables = writer.prepare(4)
    deliver(sink, sink.commit(4, committables) + sink.retract(1) + sink.commit(4, committables))
    assert rows == [{"n": 0}, {"n": 1}, {"n": 4}]


def test_the_sink_can_run_in_a_second_job():
    rows = []
    sink = to_list(rows)
    for n in range(2):
        sink.start()
        writer = sink.writer(0, 1)
        writer.write(batch(n=[n]))
        deliver(sink, sink.commit(1, writer.prepare(1)))
    assert rows == [{"n": 0}, {"n": 1}]


def test_the_list_stays_on_the_driver():
    sink = to_list([{"big": "x" * 10_000}])
    sent = pickle.dumps(sink)
    assert len(sent) < 1_000
    with pytest.raises(ConnectorError, match="a copy of the sink without the list"):
        pickle.loads(sent).deliver([1, []])


def test_a_checkpoint_without_rows_delivers_nothing():
    sink = to_list([])
    assert sink.commit(1, sink.writer(0, 1).prepare(1)) == []


def test_the_target_must_be_a_list():
    with pytest.raises(FlowError, match="the target is a tuple"):
        to_list(())
