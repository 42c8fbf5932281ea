from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random

import pyarrow as pa
import pytest
from simulated_broker import Broker, Crash, SimulatedCluster
from simulated_commits import RUN, TARGET, Commits, every_row_is_there_once

from evenflow.connectors.kafka.values.encoding import Encoding
from evenflow.connectors.kafka.writing import marker, producing, sending
from evenflow.connectors.kafka.writing.marker import CommitMarker
from evenflow.connectors.kafka.writing.sending import Sender
from evenflow.connectors.kafka.writing.writer import Messages, SendingWriter
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ConnectorError

BLOCK = 250


@pytest.mark.few(3)
@pytest.mark.parametrize("first", range(0, 2000, BLOCK))
def test_every_row_is_in_the_topic_once_whatever_is_lost_late_or_fenced(first):
    met = Counter[str]()
    for seed in range(first, first + BLOCK):
        commits = Commits(seed)
        commits.run()
        commits.check()
        met.update(commits.broker.met)
    questions = ("init_transactions", "committed", "send_offsets", "commit_transaction")
    kinds = {kind for what in questions for kind in (f"{what} is lost", f"{what} is late", f"the answer to {what} is lost")}
    assert kinds | {"crash", "zombie", "fenced", "a message fails", "the transaction is aborted"} <= met.keys()


def marker_is_read_before_others_are_fenced(patch):
    begin = producing._Session.begin

    def read_first(self):
        self.marker(RUN)
        begin(self)

    patch.setattr(producing._Session, "begin", read_first)


def marker_is_written_behind_the_transaction(patch):
    def commit(self, run, marker, messages):
        producer = self._sender.producer
        for parts in (messages, None):
            producer.begin_transaction()
            for batch in parts or ():
                self._sender.send(batch)
            self._sender.flush()
            if parts is None:
                producer.send_offsets_to_transaction([producing.position("topic", marker, run)], self._groups[run], 1)
            producer.commit_transaction(1)
        self._markers[run] = marker

    patch.setattr(producing._Session, "commit", commit)


def unknown_outcome_counts_as_committed(patch):
    from simulated_broker import Producer

    commit = Producer.commit_transaction

    def hopeful(self, timeout):
        from confluent_kafka import KafkaException

        try:
            commit(self, timeout)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise

    patch.setattr(Producer, "commit_transaction", hopeful)


def session_goes_on_after_an_error(patch):
    patch.setattr(producing.Committer, "close", lambda self: None)


def chunks_begin_anew(patch):
    patch.setattr(
        CommitMarker,
        "done_of",
        lambda self, n: 0 if (self.checkpoint == n and not self.complete) else (None if self.checkpoint >= n else 0),
    )


def failed_delivery_is_overlooked(patch):
    patch.setattr(Sender, "_delivered", lambda self, error, message: None)
    patch.setattr("simulated_broker.Producer._broken", property(lambda self: False, lambda self, value: None), raising=False)


@pytest.mark.parametrize(
    ("fault", "within"),
    [
        (marker_is_read_before_others_are_fenced, 300),
        (marker_is_written_behind_the_transaction, 100),
        (unknown_outcome_counts_as_committed, 100),
        (session_goes_on_after_an_error, 100),
        (chunks_begin_anew, 300),
        (failed_delivery_is_overlooked, 100),
    ],
)
def test_planted_faults_are_found(fault, within):
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        found = next((seed for seed in range(within) if fails(seed)), None)
    assert found is not None, f"{fault.__name__} does not show in {within} runs"
    every_row_is_there_once(found)


def fails(seed):
    try:
        every_row_is_there_once(seed)
    except Exception:  # noqa: BLE001 -- a fault may show itself as any error
        return True
    return False


def test_rows_sent_at_least_once_are_in_the_topic_when_a_checkpoint_is_prepared():
    broken = 0
    for seed in range(300):
        random = Random(seed)
        broker = Broker(random, random.randint(0, 4))
        sent = [b"%d" % number for number in range(20)]
        with suppress(Crash, ConnectorError):
            cluster = SimulatedCluster(broker)
            sender = Sender(cluster, "topic", "murmur2", 1_000_000, enable_idempotence=True)
            writer = SendingWriter(Messages(Encoding("raw"), 1_000_000), cluster, "topic", sender)
            writer.write(Batch(pa.record_batch({"value": sent})))
            writer.prepare(1)
            assert Counter(broker.topic) >= Counter(sent)
            continue
        broken += 1
    assert 0 < broken < 300, "some runs meet faults, and some do not"


def test_marker_that_is_lost_stops_a_commit_that_depends_on_it():
    commits = Commits(0)
    commits.broker.faults = 0
    commits.broker.offsets.clear()
    commits.checkpoints = [[[b"row"]]]
    with pytest.raises(ConnectorError, match=rf"the marker .* of the group `{TARGET.group(RUN)}`, is missing.*guarantee=\"at_least_once\""):
        commits._commit(commits._committer(), 1)
    assert commits.broker.topic == []


def test_brokers_that_never_answer_end_a_commit_after_a_while(monkeypatch):
    commits = Commits(0)
    commits.broker.faults = 0
    commits.checkpoints = [[[b"row"]]]
    monkeypatch.setattr(commits.broker, "ask", lambda kind, request: commits.broker._raise())
    with pytest.raises(ConnectorError, match="checkpoint 1 can't be committed to topic `topic`"):
        commits._commit(commits._committer(), 1)


def test_errors_that_another_try_would_not_help_are_known_to_the_client():
    from confluent_kafka import KafkaError

    names = {KafkaError(getattr(KafkaError, name)).name() for name in dir(KafkaError) if isinstance(getattr(KafkaError, name), int)}
    assert names >= sending._FINAL


@pytest.mark.parametrize("metadata", [None, "", "x", "{}", CommitMarker(4).metadata("r1"), CommitMarker(5).metadata("r2")])
def test_offset_that_is_no_marker_of_this_run(metadata):
    with pytest.raises(ConnectorError, match=r"the marker at offset 5 of run r1 is .*, which evenflow did not write"):
        marker.CommitMarker.parsed(5, metadata, "r1")
