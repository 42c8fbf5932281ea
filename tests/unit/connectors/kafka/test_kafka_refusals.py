"""Errors for clients that a broker rejects: TLS missing or unexpected, certificates, logins, rights."""

from __future__ import annotations

import shutil
import socket
import threading

import pytest
from patience import patience
from refusing_broker import certificate, refusing_broker, server_tls

import evenflow as ef
from evenflow.connectors.kafka import cluster
from evenflow.connectors.kafka.reading import topics

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing")]


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Shorten time-outs of 20 s."""
    monkeypatch.setattr(topics, "REPLY_SECONDS", patience(3))
    monkeypatch.setattr(cluster.KafkaCluster.partitions, "__defaults__", (patience(3),))


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1,DNS:localhost")


def refused(address, options, problem):
    """Assert that neither a source nor a sink starts."""
    source = ef.read_kafka("clicks", bootstrap=address, format="raw", options=options)
    sink = ef.write_kafka("clicks", bootstrap=address, options=options)
    for start in (source.start, sink.start):
        with pytest.raises(ef.ConnectorError, match=problem):
            start()


def test_a_port_that_wants_tls_and_a_client_without(certified):
    with refusing_broker(server_tls(*certified)) as address:
        refused(address, {}, r"no broker answers at .*; check the address, .*and that it expects this security.protocol")


def test_a_port_without_tls_and_a_client_that_wants_it():
    with refusing_broker() as address:
        refused(address, {"security.protocol": "SSL"}, r"check security.protocol|expects this security.protocol")


def test_a_certificate_that_the_client_does_not_trust(certified):
    with refusing_broker(server_tls(*certified)) as address:
        refused(address, {"security.protocol": "SSL"}, r"TLS was refused; check security.protocol and the ssl.\* options \(.*verify failed")


def test_a_certificate_for_another_name(tmp_path):
    files = certificate(tmp_path, "DNS:elsewhere.example")
    with refusing_broker(server_tls(*files)) as address:
        options = {"security.protocol": "SSL", "ssl.ca.location": str(files[0])}
        refused(address, options, r"TLS was refused; check security.protocol and the ssl.\* options")


def test_a_client_without_the_certificate_that_the_broker_wants(certified):
    with refusing_broker(server_tls(*certified, clients=certified[0])) as address:
        options = {"security.protocol": "SSL", "ssl.ca.location": str(certified[0])}
        refused(address, options, r"TLS was refused; check|expects this security.protocol")


@pytest.mark.parametrize("tls", [False, True])
def test_a_login_that_is_wrong(certified, tls):
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "me", "sasl.password": "secret"}
    protocol = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(certified[0])} if tls else {"security.protocol": "SASL_PLAINTEXT"}
    with refusing_broker(server_tls(*certified) if tls else None) as address:
        refused(address, {**login, **protocol}, r"the broker refused the user or password; check the sasl.\* options \(.*unknown user")


@pytest.mark.parametrize("tls", [False, True])
def test_a_topic_to_which_the_user_has_no_right(certified, tls):
    options = {"security.protocol": "SSL", "ssl.ca.location": str(certified[0])} if tls else {}
    with refusing_broker(server_tls(*certified) if tls else None) as address:
        refused(address, options, r"topic `clicks`: the user has no right to this topic; ask for it, or check the sasl.\* options")


def test_a_server_that_accepts_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        refused(
            f"127.0.0.1:{silent.getsockname()[1]}",
            {"security.protocol": "SSL"},
            r"no broker at .* answered in time; check the address|no broker answers at .*; check the address",
        )


def test_a_server_of_another_protocol():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1_000)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        refused(
            f"127.0.0.1:{server.getsockname()[1]}",
            {},
            r"the server at .* doesn't speak Kafka's protocol, or requires TLS; check the address and",
        )
