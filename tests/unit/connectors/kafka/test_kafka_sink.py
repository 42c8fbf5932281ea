from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from operator import itemgetter
from pathlib import Path

import msgpack
import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka_broker import make_topic
from patience import patience

import evenflow as ef
from evenflow.bench.kafka.topics import records_of
from evenflow.connectors.kafka.cluster import KafkaCluster
from evenflow.connectors.kafka.writing import producing
from evenflow.connectors.kafka.writing.commit_process import CommitProcess
from evenflow.connectors.kafka.writing.commit_program import Commits
from evenflow.connectors.kafka.writing.marker import CommitMarker, marker_consumer, producer_id, read_marker
from evenflow.connectors.kafka.writing.sending import kafka_error
from evenflow.connectors.kafka.writing.sink import KafkaSink
from evenflow.engine.batch import Batch
from evenflow.testing.settings import changed

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.fixture
def topic(bootstrap):
    return make_topic(bootstrap, partitions=2)


@pytest.fixture
def make_sink(bootstrap, topic, tmp_path):
    """Create started sinks of a job that saves its state; they are stopped with the test."""
    made = []

    def make(**options):
        sink = ef.write_kafka(topic, bootstrap=bootstrap, **{"format": "raw", **options})
        sink.of_job("job", "write_kafka", str(tmp_path))
        sink.start()
        made.append(sink)
        return sink

    yield make
    for sink in made:
        sink.stop()


@pytest.fixture
def in_this_process(monkeypatch):
    """Run the program that commits in this process, because starting a process takes most of a second."""
    programs = {}
    answers = os.open(os.devnull, os.O_WRONLY)

    def commit(process, request):
        if process not in programs:
            programs[process] = Commits(sent(process._opening), answers)
        answer = programs[process].answer(sent(request))
        if "error" in answer:
            raise ef.ConnectorError(answer["error"])

    monkeypatch.setattr(CommitProcess, "commit", commit)
    yield
    os.close(answers)


def sent(request):
    """Return the request as it is read from the pipe."""
    return msgpack.unpackb(msgpack.packb(request))


def batch(*values, **columns):
    return Batch(pa.record_batch({"value": pa.array(values, pa.binary()), **columns}))


def staged(sink, checkpoint, *values):
    """Return a manifest's entries of a checkpoint with these messages, as staged by a worker."""
    writer = pickle.loads(pickle.dumps(sink)).writer(0, 1)
    if values:
        writer.write(batch(*values))
    committables = writer.prepare(checkpoint)
    writer.close()
    return msgpack.unpackb(msgpack.packb(committables))


def values_in(bootstrap, topic, isolation="read_committed"):
    return sorted(value for records in records_of(bootstrap, topic, isolation).values() for _, value in records)


def marker_of(sink):
    with marker_consumer(sink._cluster, f"{producer_id(sink._identity)}-{sink.run}") as consumer:
        return read_marker(consumer, sink._topic, sink.run)


def settings(folder, **more):
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder), interval="5ms"), restart=ef.RestartConfig(delay=0))
    return changed(config, **more)


def test_rows_of_a_flow_are_in_the_topic_once_with_their_keys(bootstrap, topic):
    flow = ef.Dataflow("orders")
    orders = flow.read(ef.from_items([{"user": f"u{n % 7}", "n": n} for n in range(500)]))
    orders.write(ef.write_kafka(topic, bootstrap=bootstrap, key="user", headers={"number": "n"}))
    flow.run(runtime="local").wait("60s")

    found = records_of(bootstrap, topic)
    rows = [(key, json.loads(value)) for records in found.values() for key, value in records]
    assert sorted(row["n"] for _, row in rows) == list(range(500))
    assert all(key == row["user"].encode() for key, row in rows)
    homes = {key: partition for partition, records in found.items() for key, _ in records}
    assert all(homes[key] == partition for partition, records in found.items() for key, _ in records)


@pytest.mark.usefixtures("in_this_process")
def test_messages_are_visible_when_their_checkpoint_is_committed(bootstrap, topic, make_sink):
    sink = make_sink()
    first = staged(sink, 1, b"a", b"b")
    assert values_in(bootstrap, topic, "read_uncommitted") == []
    assert sink.commit(1, first) == []
    assert values_in(bootstrap, topic) == [b"a", b"b"]


@pytest.mark.slow
def test_commit_that_is_repeated_adds_nothing(bootstrap, topic, make_sink):
    sink = make_sink()
    first = staged(sink, 1, b"a")
    sink.commit(1, first)
    sink.commit(1, first)
    successor = pickle.loads(pickle.dumps(sink))
    successor.commit(1, first)
    assert values_in(bootstrap, topic) == [b"a"]
    assert marker_of(sink) == CommitMarker(1, 1, complete=True)
    successor.stop()


@pytest.mark.slow
def test_committing_process_that_is_killed_at_any_time_is_replaced(bootstrap, topic, make_sink):
    sink = make_sink()
    sink.commit(1, staged(sink, 1, b"a"))
    os.kill(sink._process.pid, signal.SIGKILL)
    second = staged(sink, 2, b"b")
    sink.commit(2, second)
    os.kill(sink._process.pid, signal.SIGKILL)
    sink.commit(2, second)
    assert values_in(bootstrap, topic) == [b"a", b"b"]


@pytest.mark.slow
def test_committing_process_ends_with_its_parent(bootstrap, topic, make_sink, tmp_path):
    sink = make_sink()
    committables = staged(sink, 1, b"a")
    program = """
import pickle, os, signal, sys
sink, committables = pickle.loads(sys.stdin.buffer.read())
sink.commit(1, committables)
print(sink._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps((sink, committables)), stdout=subprocess.PIPE, check=False)
    assert done.returncode == -signal.SIGKILL
    wait_for_end(int(done.stdout))


def wait_for_end(pid):
    until = time.monotonic() + patience(60)
    while Path(f"/proc/{pid}").exists() and "(zombie)" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < until
        time.sleep(0.01)


CRASHING = """
import os, pickle, sys
from evenflow.connectors.kafka.writing import producing
from evenflow.connectors.kafka.writing.commit_process import CommitProcess
from evenflow.connectors.kafka.writing.commit_program import Commits
when, sink, committables = pickle.loads(sys.stdin.buffer.read())

class Producer:
    def __init__(self, inner):
        self.inner = inner
    def __getattr__(self, name):
        return getattr(self.inner, name)
    def commit_transaction(self, timeout):
        if when == "before":
            os._exit(9)
        self.inner.commit_transaction(timeout)
        os._exit(9)

begin = producing._Session.begin
def begin_and_wrap(self):
    begin(self)
    self.producer = Producer(self.producer)
producing._Session.begin = begin_and_wrap
CommitProcess.commit = lambda self, request: Commits(self._opening, os.open(os.devnull, os.O_WRONLY)).answer(request)
sink.commit(2, committables)
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_process_that_crashes_before_or_after_the_transaction_ends(when, bootstrap, topic, make_sink):
    sink = make_sink()
    sink.commit(1, staged(sink, 1, b"a"))
    second = staged(sink, 2, b"b")
    done = subprocess.run([sys.executable, "-c", CRASHING], input=pickle.dumps((when, sink, second)), check=False)
    assert done.returncode == 9
    successor = pickle.loads(pickle.dumps(sink))
    successor.commit(2, second)
    assert marker_of(sink) == CommitMarker(2, 1)
    successor.stop()
    assert values_in(bootstrap, topic) == [b"a", b"b"]


def test_open_transaction_of_a_process_that_is_taken_for_lost_is_fenced(bootstrap, topic, make_sink):
    sink = make_sink()
    zombie = Producer({"bootstrap.servers": bootstrap, "transactional.id": producer_id(sink._identity), "log_level": 0})
    zombie.init_transactions(patience(30))
    zombie.begin_transaction()
    zombie.produce(topic, b"zombie")
    zombie.flush(patience(30))
    sink.commit(1, staged(sink, 1, b"a"))
    with pytest.raises(Exception, match="fenced"):
        zombie.commit_transaction(30)
    assert values_in(bootstrap, topic) == [b"a"]


@pytest.mark.usefixtures("in_this_process")
def test_a_fenced_producer_stops_and_says_why(bootstrap, topic, make_sink):
    sink = make_sink()
    sink.commit(1, staged(sink, 1, b"a"))
    Producer({"bootstrap.servers": bootstrap, "transactional.id": producer_id(sink._identity)}).init_transactions(patience(30))
    second = staged(sink, 2, b"b")
    with pytest.raises(ef.ConnectorError, match="another producer has the same transactional id: another job of this name runs"):
        sink.commit(2, second)
    sink.commit(2, second)  # as a job does that restores its checkpoint
    assert values_in(bootstrap, topic) == [b"a", b"b"]


@pytest.mark.slow
def test_the_cause_of_fencing_is_found_when_the_client_has_lost_the_error(bootstrap, topic):
    """The client loses it rarely, when it calls back while that error is pending."""
    options = {"bootstrap.servers": bootstrap, "transactional.id": "one"}
    fenced = Producer(options)
    fenced.init_transactions(patience(30))
    lost = SystemError("flush returned NULL without setting an exception")
    fenced.begin_transaction()
    with pytest.raises(SystemError):
        kafka_error(lost, fenced)
    fenced.produce(topic, b"a")
    Producer(options).init_transactions(patience(30))
    with pytest.raises(KafkaException):
        fenced.commit_transaction(30)
    assert kafka_error(lost, fenced).name() == "_FENCED"
    with pytest.raises(SystemError):
        kafka_error(lost)


@pytest.mark.usefixtures("in_this_process")
def test_large_checkpoint_is_committed_in_chunks(bootstrap, topic, make_sink):
    sink = make_sink()
    sink.file_rows, sink.chunk_rows = 10, 20
    values = [b"%03d" % number for number in range(135)]
    sink.commit(1, staged(sink, 1, *values))
    assert marker_of(sink) == CommitMarker(1, 7, complete=True)
    assert values_in(bootstrap, topic) == values
    for records in records_of(bootstrap, topic).values():
        assert records == sorted(records, key=itemgetter(1)), "messages of a worker keep their order in a partition"


@pytest.mark.usefixtures("in_this_process")
def test_commit_goes_on_behind_the_chunks_that_are_there(bootstrap, topic, make_sink):
    sink = make_sink()
    sink.file_rows, sink.chunk_rows = 10, 20
    values = [b"%03d" % number for number in range(60)]
    committables = staged(sink, 1, *values)
    folder, last = Path(committables[0]["staging"]), committables[0]["files"][-1][0]
    (folder / last).rename(folder / "elsewhere")
    with pytest.raises(ef.ConnectorError, match=rf"{last} is missing.*CheckpointConfig"):
        sink.commit(1, committables)
    assert marker_of(sink) == CommitMarker(1, 2, complete=False)
    assert values_in(bootstrap, topic) == values[:40]
    (folder / "elsewhere").rename(folder / last)
    sink.commit(1, committables)
    assert values_in(bootstrap, topic) == values


@pytest.mark.usefixtures("in_this_process")
def test_staged_file_that_is_damaged_is_not_produced(bootstrap, topic, make_sink):
    sink = make_sink()
    committables = staged(sink, 1, b"a")
    path = Path(committables[0]["staging"], committables[0]["files"][0][0])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ef.ConnectorError, match="checksum"):
        sink.commit(1, committables)
    assert values_in(bootstrap, topic) == []


@pytest.mark.usefixtures("in_this_process")
def test_marker_is_written_with_an_empty_checkpoint_now_and_then(make_sink):
    sink = make_sink()
    assert marker_of(sink) == CommitMarker(0)
    sink.commit(1, [])
    assert marker_of(sink) == CommitMarker(1)
    sink.commit(2, [])
    assert marker_of(sink) == CommitMarker(1)
    sink._marked_at -= 2 * 3600
    sink.commit(3, [])
    assert marker_of(sink) == CommitMarker(3)


@pytest.mark.usefixtures("in_this_process")
def test_marker_that_is_gone_stops_the_commit_unless_rows_may_come_twice(bootstrap, topic, make_sink):
    sink = make_sink()
    committables = staged(sink, 1, b"a")
    group = f"{producer_id(sink._identity)}-{sink.run}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_consumer_groups([group]).values():
        deleted.result(patience(30))
    with pytest.raises(ef.ConnectorError, match=rf"`{group}`, is missing.*checkpoint 1 are in topic"):
        sink.commit(1, committables)
    assert values_in(bootstrap, topic) == []
    make_sink(guarantee="at_least_once").commit(1, committables)
    assert values_in(bootstrap, topic) == [b"a"]


@pytest.mark.usefixtures("in_this_process")
def test_another_run_goes_on_from_a_checkpoint_whose_commit_may_have_been_carried_out(bootstrap, topic, make_sink):
    first = make_sink()
    committed, uncommitted = staged(first, 1, b"a"), staged(first, 2, b"b")
    first.commit(1, committed)
    second = make_sink()
    second.commit(1, committed)
    assert values_in(bootstrap, topic) == [b"a"]
    second.commit(2, uncommitted)
    second.commit(3, staged(second, 3, b"c"))
    make_sink().commit(2, uncommitted)
    assert values_in(bootstrap, topic) == [b"a", b"b", b"c"]


@pytest.mark.usefixtures("in_this_process")
def test_job_of_another_name_and_folder_commits_where_the_first_one_would_have(bootstrap, topic, make_sink, tmp_path):
    first = make_sink()
    committed, uncommitted = staged(first, 1, b"a"), staged(first, 2, b"b")
    first.commit(1, committed)
    other = make_sink()
    other.of_job("another", "to_kafka", str(tmp_path / "elsewhere"))
    other.commit(1, committed)
    other.commit(2, uncommitted)
    assert values_in(bootstrap, topic) == [b"a", b"b"]
    assert marker_of(first) == CommitMarker(2, 1)


@pytest.mark.usefixtures("in_this_process")
def test_nothing_stays_of_what_is_committed_or_never_will_be(make_sink):
    sink = make_sink()
    folder = Path(sink._staging)
    sink.commit(1, staged(sink, 1, b"a"))
    staged(sink, 2, b"of an attempt that failed")
    sink.sweep()
    assert sorted(folder.iterdir()) == []


def test_next_run_removes_what_a_killed_one_staged_unless_a_checkpoint_may_need_it(make_sink):
    killed = make_sink()
    killed.take_over("job", list)
    needed, _ = staged(killed, 1, b"a"), staged(killed, 2, b"b")
    killed._claim.release()
    sink = make_sink()
    sink.take_over("job", lambda: [*needed, {"prepared": "a file of another sink"}])
    left = [path.name for path in Path(sink._staging).glob("*.staged")]
    assert left == [needed[0]["files"][0][0]]
    sink.take_over("job", list)
    assert list(Path(sink._staging).glob("*.staged")) == []
    sink.stop()
    assert list(Path(sink._staging).iterdir()) == []


def test_file_that_can_not_be_written_leaves_nothing(make_sink, monkeypatch):
    def full(self, batch):
        raise OSError(28, "No space left on device")

    writer = make_sink().writer(0, 1)
    writer.write(batch(b"a"))
    monkeypatch.setattr("evenflow.connectors.staged.staging.StateFileWriter.write", full)
    with pytest.raises(ef.ConnectorError, match=r"operator `write_kafka`: can't write into .*staged-write_kafka: .*No space left"):
        writer.prepare(1)
    assert [path for path in Path(writer._place.staging).iterdir() if not path.name.endswith(".owner")] == []


@pytest.mark.slow
def test_job_that_goes_back_again_and_again_writes_every_row_once(bootstrap, topic, tmp_path):
    class Flaky(KafkaSink):
        """The first commit fails before it is carried out, the second afterwards."""

        asked = 0

        def commit(self, checkpoint, committables):
            type(self).asked += 1
            if self.asked == 1:
                raise OSError("not now")
            result = super().commit(checkpoint, committables)
            if self.asked == 2:
                raise OSError("not known")
            return result

    plain = ef.write_kafka(topic, bootstrap=bootstrap)
    sink = Flaky(topic, plain._cluster, plain._encoding, "murmur2", "exactly_once")
    flow = ef.Dataflow("flaky")
    flow.read(ef.generate(total=2_000, keys=20, rows_per_batch=64, rate=2_000)).write(sink)
    flow.run(runtime="local", config=settings(tmp_path, checkpoint={"interval": "100ms"}, restart={"most": 1000})).wait("100s")
    assert Flaky.asked > 2
    assert sorted(json.loads(value)["seq"] for value in values_in(bootstrap, topic)) == list(range(2_000))
    assert list((tmp_path / "flaky").glob("staged-*/*.staged")) == []


def test_rows_written_at_least_once_are_there_when_a_checkpoint_is_prepared(bootstrap, topic, make_sink):
    sink = make_sink(guarantee="at_least_once")
    writer = sink.writer(0, 1)
    writer.write(batch(b"a", None, key=["x", "y"]))
    assert writer.prepare(1) == []
    found = records_of(bootstrap, topic)
    assert {*found[0], *found[1]} == {(None, b"a"), (None, None)}
    writer.close()
    assert sink.commit(1, []) == []
    assert sink.retractable


@pytest.mark.slow
def test_rows_written_exactly_once_can_not_be_retracted(make_sink):
    assert not make_sink().retractable


def test_message_that_is_too_large(make_sink):
    writer = make_sink().writer(0, 1)
    with pytest.raises(ef.RecordError, match=r"a message has 2,000,\d+ bytes, and topic and producer take 1,\d+,\d+; make it smaller"):
        writer.write(batch(b"a", b"x" * 2_000_000))


def test_topic_that_is_missing(bootstrap):
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).write(ef.write_kafka("nowhere", bootstrap=bootstrap))
    with pytest.raises(ef.ConnectorError, match="operator `write_kafka`: topic `nowhere`: there is no such topic"):
        flow.run(runtime="local")


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_topic_that_is_deleted_while_rows_wait(bootstrap, topic, make_sink):
    sink = make_sink(options={"message.timeout.ms": 2_000})
    committables = staged(sink, 1, b"a")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_topics([topic]).values():
        deleted.result(patience(30))
    with pytest.raises(ef.ConnectorError, match=rf"can't be committed to topic `{topic}`|is missing"):
        sink.commit(1, committables)


def test_column_of_the_key_that_is_missing_is_known_before_the_job_runs(bootstrap, topic):
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).map(lambda row: {"n": row["item"]}, schema=pa.schema({"n": pa.int64()})).write(
        ef.write_kafka(topic, bootstrap=bootstrap, key="user")
    )
    with pytest.raises(ef.FlowError, match="operator `write_kafka`: no column `user` among n"):
        flow.run(runtime="local")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": ""}, "topic is ''; it must be a topic's name"),
        ({"format": "xml"}, "format='xml'; expected one of json, raw, text, arrow"),
        ({"partitioner": "sticky"}, "partitioner='sticky'; expected one of murmur2, crc32, random"),
        ({"guarantee": "maybe"}, "guarantee='maybe'; expected 'exactly_once' or 'at_least_once'"),
        ({"key": []}, "key=\\[\\] names no column"),
        ({"key": 7}, "take names of columns|not iterable"),
        ({"format": "arrow", "key": "n"}, "puts many rows into one message"),
        ({"options": {"transactional.id": "mine"}}, "can't be set"),
        ({"options": {"oauth_cb": print}}, "expected a string, a number or a bool"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(ef.FlowError, match=message):
        ef.write_kafka(**{"topic": "t", "bootstrap": "localhost:9092", **options})


@pytest.mark.slow
def test_broker_that_is_gone_when_a_checkpoint_is_committed(monkeypatch):
    monkeypatch.setattr(producing, "PATIENCE", 0.5)
    monkeypatch.setattr(producing, "ANSWER_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    committer = producing.Committer(KafkaCluster(address), producing.TopicTarget("t", "evenflow-job/write_kafka", "murmur2", 1_000_000))
    with pytest.raises(ef.ConnectorError, match=rf"no broker answers at {address}"):
        committer.commit("run", 1, [list], begun=True)
