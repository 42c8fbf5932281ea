"""A topic that is written with mode="upsert" has, for each key, the present row of the stream as its newest message, or a tombstone."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from kafka_broker import make_topic

import evenflow as ef
from evenflow.bench.kafka.topics import records_of
from evenflow.connectors.kafka.values.encoding import Encoding
from evenflow.connectors.kafka.writing.sink import KafkaSink
from evenflow.connectors.kafka.writing.upserts import NetChunks, Upserts, net_messages
from evenflow.engine.batch import Batch
from evenflow.engine.weights import WEIGHT

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

MOVES = [("ann", "Rome"), ("bob", "Rome"), ("ann", "Oslo"), ("bob", "Oslo"), ("ann", "Bern"), ("bob", "Rome")]


def cities(moves: Any) -> ef.Stream:
    """Return how many users are in each city, by each user's last one."""
    rows = [{"user": user, "city": city, "at": at} for at, (user, city) in enumerate(moves)]
    users = ef.Dataflow("cities").read(ef.from_items(rows)).key_by("user").aggregate(city=ef.max_by("city", "at"))
    return users.key_by("city").aggregate(n=ef.count(), users=ef.max("user"))


def compacted(bootstrap: str, topic: str) -> dict[bytes, Any]:
    """Return the newest value of each key, as a reader of the topic sees it; without the keys that are gone."""
    newest = {key: value for records in records_of(bootstrap, topic).values() for key, value in records}
    return {key: json.loads(value) for key, value in newest.items() if value is not None}


def settings(folder: Any, **checkpoint: Any) -> ef.JobConfig:
    return ef.JobConfig(
        checkpoint=ef.CheckpointConfig(str(folder), **checkpoint),
        network=ef.NetworkConfig(source_rows=1),
        restart=ef.RestartConfig(delay=0, most=1_000),
    )


@pytest.mark.parametrize("interval", ["1h", "1ms"])
def test_keys_that_are_gone_get_a_tombstone_and_others_their_newest_row(bootstrap, tmp_path, interval):
    topic = make_topic(bootstrap, partitions=2)
    stream = cities(MOVES)
    stream.write(ef.write_kafka(topic, bootstrap=bootstrap, mode="upsert", key="city", headers={"count": "n"}))
    stream.flow.run(runtime="local", config=settings(tmp_path, interval=interval)).wait("60s")
    assert compacted(bootstrap, topic) == {
        b"Bern": {"city": "Bern", "n": 1, "users": "ann"},
        b"Rome": {"city": "Rome", "n": 1, "users": "bob"},
    }


class Failing(KafkaSink):
    """A sink whose commits fail in turn before they are carried out, afterwards, and not at all."""

    asked = 0

    def commit(self, checkpoint: int, committables: Any) -> Any:
        type(self).asked += 1
        if self.asked % 3 == 1 and self.asked < 20:
            raise OSError("not now")
        result = super().commit(checkpoint, committables)
        if self.asked % 3 == 2 and self.asked < 20:
            raise OSError("not known")
        return result


@pytest.mark.slow
def test_topic_has_the_present_rows_though_the_job_goes_back_again_and_again(bootstrap, tmp_path, monkeypatch):
    monkeypatch.setattr(Failing, "asked", 0)
    topic, chance = make_topic(bootstrap, partitions=2), random.Random(5)
    moves = [(chance.choice("abcdefgh"), chance.choice(["Rome", "Oslo", "Bern", "Turin", "Kyiv"])) for _ in range(400)]
    plain = ef.write_kafka(topic, bootstrap=bootstrap, mode="upsert", key="city")
    stream = cities(moves).filter(ef.col("n") < 3)
    stream.write(Failing(topic, plain._cluster, plain._encoding, "murmur2", "exactly_once", upserts=True))
    config = settings(tmp_path, interval="100ms")
    stream.flow.run(runtime="local", parallelism=2, config=config).wait("100s")
    assert Failing.asked > 2
    last: dict[str, list[str]] = {}
    for user, city in dict(moves).items():
        last.setdefault(city, []).append(user)
    few = {city: users for city, users in last.items() if len(users) < 3}
    assert compacted(bootstrap, topic) == {
        city.encode(): {"city": city, "n": len(users), "users": max(users)} for city, users in few.items()
    }
    for records in records_of(bootstrap, topic).values():
        for key in {key for key, _ in records}:
            values = [value for own, value in records if own == key]
            assert all(before != after for before, after in pairwise(values)), "no message is repeated"


@pytest.mark.parametrize("seed", range(5))
def test_messages_of_a_checkpoint_do_not_depend_on_the_order_of_its_rows(seed):
    chance = random.Random(seed)
    present: dict[str, Any] = {}
    topic: dict[bytes, Any] = {}
    upserts = Upserts(Encoding("json", key="k"))
    for _ in range(6):
        rows = []
        for _ in range(chance.randint(1, 20)):
            key = chance.choice("abcd")
            old, new = present.pop(key, None), chance.choice([None, [], [1], [1, 2], [2]])
            rows += [{"k": key, "n": value, WEIGHT: weight} for value, weight in ((old, -1), (new, 1)) if value is not None]
            if new is not None:
                present[key] = new
        chance.shuffle(rows)
        schema = pa.schema({"k": pa.string(), "n": pa.list_(pa.int64()), WEIGHT: pa.int64()})
        staged = [upserts.staged(Batch(pa.RecordBatch.from_pylist([row], schema=schema))) for row in rows]
        for batch in net_messages(staged, "write_kafka"):
            topic |= {message["key"]: message["value"] for message in batch.to_pylist()}
        assert {key: json.loads(value)["n"] for key, value in topic.items() if value is not None} == {
            key.encode(): value for key, value in present.items()
        }


def test_large_checkpoint_takes_several_transactions(monkeypatch):
    monkeypatch.setattr("evenflow.connectors.kafka.writing.upserts.CHUNK_ROWS", 2)
    rows = pa.record_batch({"k": ["a", "b", "c"], WEIGHT: pa.array([1, 1, 1])})
    staged = Upserts(Encoding("json", key="k")).staged(Batch(rows))
    assert [[batch.num_rows for batch in chunk()] for chunk in NetChunks(lambda: [staged], "write_kafka")] == [[2], [1]]


def test_two_present_rows_of_one_key_are_an_error():
    staged = Upserts(Encoding("json", key="k")).staged(Batch(pa.record_batch({"k": ["a", "a"], "n": [1, 2], WEIGHT: pa.array([1, 1])})))
    with pytest.raises(ef.ConnectorError, match=r"2 rows have the key b'a'.*let key= name the columns that tell them apart"):
        list(net_messages([staged], "write_kafka"))


def test_row_without_a_key_is_an_error_that_names_it():
    upserts = Upserts(Encoding("json", key="k"))
    with pytest.raises(ef.RecordError, match=r"column `k`, the message's key, is null(?s:.*)'n': 2"):
        upserts.staged(Batch(pa.record_batch({"k": ["a", None], "n": [1, 2]})))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"key": None}, 'mode="upsert" goes with key='),
        ({"mode": "insert"}, 'mode=\'insert\'; expected "append" or "upsert"'),
        ({"partitioner": "random"}, "needs all messages of a key in one partition"),
        ({"guarantee": "at_least_once"}, 'needs guarantee="exactly_once"'),
    ],
)
def test_settings_with_which_messages_cannot_replace_others_are_refused(options, problem):
    with pytest.raises(ef.FlowError, match=problem):
        ef.write_kafka(**{"topic": "t", "bootstrap": "localhost:9092", "mode": "upsert", "key": "city", **options})


def test_streams_whose_replaced_rows_are_not_known_are_refused():
    def sink(key: str = "city") -> KafkaSink:
        return ef.write_kafka("t", bootstrap="localhost:9092", mode="upsert", key=key)

    with pytest.raises(ef.FlowError, match=r"its rows are updates by city, and key= has n.*write key=\['city'\]"):
        cities(MOVES).write(sink("n"))
    with pytest.raises(ef.FlowError, match="these rows replace none: this stream is append-only"):
        ef.Dataflow("rows").read(ef.from_items([{"city": "Rome"}])).write(sink())
    with pytest.raises(ef.FlowError, match="it takes updates of a running aggregate"):
        cities(MOVES).map_batches(lambda batch: batch).write(sink())


def test_stream_of_updates_is_read_by_weight_only_with_mode_upsert():
    for mode, shown in (("append", False), ("upsert", True)):
        stream = cities(MOVES)
        stream.write(ef.write_kafka("t", bootstrap="localhost:9092", mode=mode, key="city"))
        line = next(line for line in stream.flow.explain().splitlines() if line.strip().startswith("write_kafka"))
        assert (" by weight" in line) is shown
