"""Errors for invalid addresses, options, topics and offsets of jobs that read Kafka."""

from __future__ import annotations

import os
import socket

import pyarrow as pa
import pytest
from kafka_broker import fill, make_topic
from kafka_jobs import read

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.mark.slow
def test_no_broker(monkeypatch):
    monkeypatch.setattr("evenflow.connectors.kafka.reading.topics.REPLY_SECONDS", 3.0)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(ef.ConnectorError, match=r"operator `read_kafka`: .*no broker answers at .*check the address"):
            read(f"127.0.0.1:{closed.getsockname()[1]}", "clicks")


@pytest.mark.slow
def test_broker_that_speaks_no_tls(bootstrap, monkeypatch):
    monkeypatch.setattr("evenflow.connectors.kafka.reading.topics.REPLY_SECONDS", 3.0)
    with pytest.raises(ef.ConnectorError, match=r"no broker answers at .*expects this security.protocol"):
        read(bootstrap, make_topic(bootstrap), options={"security.protocol": "ssl"})


@pytest.mark.parametrize("options", [{"no.such.option": 1}, {"security.protocol": "nonsense"}])
def test_options_that_the_client_refuses(bootstrap, options):
    with pytest.raises(ef.FlowError, match=r"operator `read_kafka`: options: (No such|Invalid)"):
        read(bootstrap, "clicks", options=options)


def test_no_topic(bootstrap):
    with pytest.raises(ef.ConnectorError, match=r"topic `nowhere`: there is no such topic.*create it"):
        read(bootstrap, "nowhere")


@pytest.mark.skipif("EVENFLOW_KAFKA" in os.environ, reason="other brokers give no larger answers than they are asked for")
def test_answer_that_is_larger_than_the_client_takes_stops_the_job(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [(None, b"x" * 1_000)] * 100})
    bounds = {"fetch.max.bytes": 2_000, "message.max.bytes": 2_000, "receive.message.max.bytes": 3_000}
    with pytest.raises(ef.ConnectorError, match=r"options=\{'receive.message.max.bytes': ...\} \(.*Invalid response size"):
        read(bootstrap, topic, format="raw", schema=None, options=bounds)
    assert len(read(bootstrap, topic, format="raw")) == 100


def test_offset_behind_the_end(bootstrap):
    with pytest.raises(ef.ConnectorError, match=r"ends at offset 0"):
        read(bootstrap, make_topic(bootstrap), start={0: 5}, format="raw")


def test_partition_that_is_not_there(bootstrap):
    with pytest.raises(ef.ConnectorError, match=r"start names partition 7 of topic .*, which isn't there"):
        read(bootstrap, make_topic(bootstrap), start={7: 5}, format="raw")


def test_client_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(ef.FlowError, match=r"pip install 'evenflow\[kafka\]'"):
        ef.read_kafka("clicks", bootstrap="localhost:9092").start()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"topics": []}, "expected the name of a topic, or a list of names"),
        ({"topics": ["a", "a"]}, "has a name twice"),
        ({"format": "xml"}, 'expected "json"'),
        ({"format": "raw", "schema": {"a": "int64"}}, "takes no schema"),
        ({"start": "first"}, 'expected "earliest", "latest", a datetime'),
        ({"until": "later"}, 'expected "now"'),
        ({"start": {"a": 1}}, "start names 'a'"),
        ({"start": {0: -1}}, "start has the offset -1"),
        ({"columns": ["colour"]}, "expected a list of these, each once: key, value"),
        ({"columns": "key"}, "expected a list of these"),
        ({"on_error": "ignore"}, "on_error='ignore'"),
        ({"on_lost_offsets": "latest"}, "on_lost_offsets='latest'"),
        ({"format": "raw", "columns": ["value"]}, "both have `value`"),
        ({"idle_after": "soon"}, "idle_after 'soon' is not a duration"),
        ({"options": {"group.id": "x"}}, "can't be set"),
        ({"key": "id"}, "key= is for format=\"debezium\", and this is format='json'"),
        ({"format": "debezium"}, "needs key=, the columns of the table's primary key"),
        ({"format": "debezium", "key": ["id", "id"]}, "needs key="),
        ({"format": "debezium", "key": [1]}, r"needs key=.*got \[1\]"),
        ({"format": "debezium", "key": 1}, "needs key=.*got 1"),
        ({"format": "debezium", "key": "id", "topics": ["a", "b"]}, "reads one topic, and here are a, b"),
        ({"format": "debezium", "key": "id", "event_time": "timestamp"}, "has no event_time="),
        ({"format": "debezium", "key": "id", "columns": ["offset"]}, "has no columns="),
        ({"format": "debezium", "key": "id", "registry": "localhost:8081"}, "registry must be the address"),
        ({"format": "json", "registry": "http://localhost:8081"}, 'registry= is for format="avro" and format="debezium"'),
        ({"format": "debezium", "key": "id", "schema": {"n": "int64"}}, "schema= has no column `id`"),
        ({"format": "debezium", "key": "id", "schema": {"id": "int64", "__x": "string"}}, "names that begin with __ are taken"),
        ({"format": "debezium", "key": "id", "schema": {"id": "int64", "tags": pa.list_(pa.string())}}, "can't be nested"),
    ],
)
def test_wrong_arguments_are_refused(arguments, problem):
    with pytest.raises(ef.FlowError, match=problem):
        ef.read_kafka(arguments.pop("topics", "clicks"), bootstrap="localhost:9092", **arguments)
