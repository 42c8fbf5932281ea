from __future__ import annotations

import socket

import pytest
from kafka_broker import fill, make_topic
from patience import patience

import evenflow as ef
from evenflow.bench.kafka.topics import records_of
from evenflow.connectors.kafka.cluster import KafkaCluster


def test_partitions_of_topics(bootstrap):
    one, three = make_topic(bootstrap), make_topic(bootstrap, partitions=3)

    assert KafkaCluster(bootstrap).partitions([one, three]) == {one: [0], three: [0, 1, 2]}


def test_records_of_a_topic_are_those_it_was_filled_with(bootstrap):
    topic = make_topic(bootstrap, partitions=2)
    records = {0: [(b"a", b"1"), (None, b"2")], 1: [(b"b", None)]}

    fill(bootstrap, topic, records)

    assert records_of(bootstrap, topic) == records


def test_topic_that_is_missing(bootstrap):
    with pytest.raises(ef.ConnectorError, match=r"operator `clicks`: topic `nowhere`: there is no such topic.*create it"):
        KafkaCluster(bootstrap, operator="clicks").partitions(["nowhere"])


@pytest.mark.slow
def test_port_without_a_listener_is_an_error():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"

        with pytest.raises(ef.ConnectorError, match=rf"no broker answers at {address}; check the address"):
            KafkaCluster(address).partitions(["clicks"], seconds=patience(3))


@pytest.mark.slow
def test_server_that_is_no_broker():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cluster = KafkaCluster(f"127.0.0.1:{silent.getsockname()[1]}")

        with pytest.raises(ef.ConnectorError, match=r"no broker answers at .*; check the address"):
            cluster.partitions(["clicks"], seconds=2)


@pytest.mark.slow
def test_name_that_has_no_address():
    with pytest.raises(ef.ConnectorError, match=r"can't be resolved; check the address"):
        KafkaCluster("no-such-host.invalid:9092").partitions(["clicks"], seconds=patience(3))


@pytest.mark.parametrize("bootstrap", ["", "  ", None, 9092])
def test_wrong_address_is_refused(bootstrap):
    with pytest.raises(ef.FlowError, match=r"it must be addresses: host:9092"):
        KafkaCluster(bootstrap)


def test_option_that_the_guarantees_need_otherwise():
    with pytest.raises(ef.FlowError, match=r"'enable.auto.commit': \.\.\.\} can't be set"):
        KafkaCluster("localhost:9092", {"enable.auto.commit": True})


def test_passwords_are_not_shown():
    assert "secret" not in repr(KafkaCluster("localhost:9092", {"sasl.password": "secret"}))
