"""Messages of strangers, of finished attempts and of broken peers are rejected and reported."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

import pytest
import zmq
from transports import PATIENCE, TCP, numbers, receive, until

from evenflow.actors.channels import sockets
from evenflow.actors.channels.frames import ChannelEncoder
from evenflow.actors.channels.headers import pack
from evenflow.actors.channels.security import Security
from evenflow.actors.channels.socket_folder import SocketFolder
from evenflow.engine.errors import ProtocolError
from evenflow.engine.protocol.elements import Watermark


def test_garbage_from_a_peer_that_was_not_accepted_is_refused_and_counted_and_logged_once(pair, stranger, security, caplog):
    up, down = pair
    socket = stranger(down.address.ipc, password=security.password)
    garbage = [
        [b""], [b"\xc1"], [os.urandom(50)], [pack((1, 2))], [pack((1, 7, 0, 0, 5))], [pack(("a", "b", "c", "d"))],
        [pack((1, -7, 0, 0))], [pack((1, 7, 1, 0, 5))], [pack((1, 99, 0, 0, 5))], [b"x"] * 100, [os.urandom(70_000)] * 3,
    ]  # fmt: skip
    for message in garbage:
        socket.send_multipart(message)
    up.send(7, Watermark(1))
    received = until(lambda received: received and down.refused == len(garbage), down)
    up.send(7, Watermark(2))
    assert received + receive(down, 1) == [(7, Watermark(1)), (7, Watermark(2))]
    assert [record.message for record in caplog.records if "`stranger`" in record.message] == [caplog.records[0].message]


def test_a_channel_is_refused_from_a_peer_that_it_was_not_accepted_from(pair, make):
    up, down = pair
    other = make("other")
    other.connect(7, down.address)
    other.send(7, Watermark(666))
    until(lambda _: down.refused == 1, down)
    up.send(7, Watermark(1))
    assert receive(down, 1) == [(7, Watermark(1))]


def test_messages_of_an_older_attempt_are_dropped_and_counted(make):
    old, new, down = make("up"), make("up", attempt=1), make("down", attempt=1)
    down.accept(7, "up")
    old.connect(7, down.address)
    new.connect(7, down.address)
    old.send(7, Watermark(1))
    old.send(7, numbers(0))
    until(lambda _: down.stale == 2, down)
    new.send(7, Watermark(2))
    assert receive(down, 1) == [(7, Watermark(2))]
    assert down.refused == 0


def test_a_newer_attempt_is_refused(make):
    new, down = make("up", attempt=1), make("down")
    down.accept(7, "up")
    new.connect(7, down.address)
    new.send(7, Watermark(1))
    until(lambda _: down.refused == 1, down)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        pytest.param([pack((1, 7, 0, 5, 5))], "message 0 should come next, got message 5", id="gap"),
        pytest.param([pack((0, 7, 0, 0, 0, 2)), b"corrupt", b"corrupt"], "schema", id="corrupt batch"),
        pytest.param([b"\xc1"], "not msgpack", id="corrupt header"),
        pytest.param([b""] * 100, "1 to 4 frames", id="too many frames"),
    ],
)
def test_a_broken_message_from_an_accepted_peer_fails_the_poll(make, stranger, security, message, problem):
    down = make("down")
    down.accept(7, "up")
    stranger(down.address.ipc, b"up#0", password=security.password).send_multipart(message)
    with pytest.raises(ProtocolError, match=f"transport `down`, from `up#0`: .*{problem}"):
        until(lambda _: down.refused, down)


def test_a_sender_that_ignores_its_credit_fails_the_poll(make, stranger, security):
    down, encoder = make("down"), ChannelEncoder(7, 0, "up")
    down.accept(7, "up")
    socket = stranger(down.address.ipc, b"up#0", password=security.password)
    for i in range(5):
        socket.send_multipart(encoder.encode(numbers(i)))
    with pytest.raises(ProtocolError, match="without credit"):
        until(lambda _: False, down)


@pytest.mark.parametrize(
    "credit",
    [
        pytest.param([b"\xc1"], id="no msgpack"),
        pytest.param([pack((7, 0, 1))], id="field missing"),
        pytest.param([pack((7, 0, 0, 0)), b""], id="trailing frame"),
        pytest.param([pack((7, 0, -1, 0))], id="negative"),
        pytest.param([pack((7, 0, 1, 1))], id="never spent"),
        pytest.param([pack((8, 0, 0, 0))], id="unknown channel"),
        pytest.param([pack((7, 1, 0, 0))], id="newer attempt"),
    ],
)
def test_wrong_credit_is_refused_and_the_channel_goes_on(pair, credit):
    up, down = pair
    up.send(7, Watermark(1))
    receive(down, 1)
    down._router.send_multipart([b"up#0", *credit])
    until(lambda _: up.refused == 1, up)
    for i in range(8):
        up.send(7, numbers(i))
    receive(down, 4)
    for _ in range(4):
        down.consumed(7, numbers(0))
    until(lambda received: len(received) == 4, up, down)


@pytest.mark.parametrize("password", [None, b"guessed"], ids=["none", "wrong"])
def test_recorded_messages_of_a_sender_do_not_enter_a_second_time_without_the_password(pair, stranger, password):
    up, down = pair
    recorder = ChannelEncoder(7, 0, "up")
    recorded = [recorder.encode(numbers(i)) for i in range(3)]
    for i in range(3):
        up.send(7, numbers(i))
    assert receive(down, 3) == [(7, i) for i in range(3)]
    intruder = stranger(down.address.ipc, b"up#0", password=password)
    with suppress(zmq.Again):  # it was rejected already
        for message in recorded * 100:
            intruder.send_multipart(message, zmq.NOBLOCK)
    assert intruder.get_monitor_socket().poll(PATIENCE * 1000), "the connection was not refused"
    up.send(7, numbers(3))
    assert receive(down, 1) == [(7, 3)]
    assert (down._refused, down.stale) == (0, 0), "no message came in"


@TCP
def test_a_connection_that_does_not_say_who_it_is_is_closed(make, monkeypatch, tcp):
    monkeypatch.setattr(sockets, "HANDSHAKE_SECONDS", 0.05)
    down = make("down")
    family = socket.AF_INET if tcp else socket.AF_UNIX
    address = ("127.0.0.1", int(down.address.tcp.rpartition(":")[2])) if tcp else down.address.ipc.removeprefix("ipc://")
    for said in (b"", b"\xff\x00\x00"):
        with socket.socket(family) as stranger:
            stranger.settimeout(PATIENCE)
            stranger.connect(address)
            with suppress(BrokenPipeError, ConnectionResetError):  # it was closed already
                stranger.sendall(said)
                while stranger.recv(100):
                    pass


def test_a_flood_of_connections_that_are_turned_away_is_counted_and_leaves_a_few_lines(make, stranger, caplog):
    down = make("down")
    for number in range(1, 21):
        stranger(down.address.ipc, password=b"guessed")
        until(lambda _, number=number: down.refused == number, down)
    told = [record.getMessage() for record in caplog.records if record.name.endswith("gatekeeper")]  # threads of others may tell more
    assert len(told) == 5
    assert "rejected a connection from this node, 16 so far" in told[-1]


@pytest.mark.parametrize("what", ["the folder", "a socket's file"])
def test_peers_connect_although_the_folder_of_sockets_or_a_socket_was_removed(pair, make, security, what):
    up, down = pair
    up.send(7, Watermark(1))
    assert receive(down, 1) == [(7, Watermark(1))], "they are connected"
    if what == "the folder":
        shutil.rmtree(SocketFolder(security.job).path)
    else:
        Path(down.address.ipc.removeprefix("ipc://")).unlink()
    late = make("late")
    down.accept(8, "late")
    late.accept(9, "up")
    late.connect(8, down.address)
    up.connect(9, late.address)
    up.send(7, Watermark(7))
    late.send(8, Watermark(8))
    up.send(9, Watermark(9))
    assert sorted(receive(down, 2)) == [(7, Watermark(7)), (8, Watermark(8))]
    assert receive(late, 1) == [(9, Watermark(9))]


@pytest.mark.parametrize("who", ["without keys", "with fresh keys", "with another job's server key"])
def test_curve_refuses_a_stranger(make, stranger, security, who):
    up, down = make("up", tcp=True), make("down", tcp=True)
    down.accept(7, "up")
    up.connect(7, down.address)
    keys = {
        "without keys": None,
        "with fresh keys": (security.server_public, zmq.curve_keypair()),
        "with another job's server key": (Security.generate().server_public, (security.client_public, security.client_secret)),
    }[who]
    intruder = stranger(down.address.tcp, b"up#0", keys)
    with suppress(zmq.Again):  # it was rejected already
        intruder.send(pack((1, 7, 0, 0, 666)), zmq.NOBLOCK)
    assert intruder.get_monitor_socket().poll(PATIENCE * 1000), "the connection was not refused"
    up.send(7, Watermark(1))
    assert receive(down, 1) == [(7, Watermark(1))]
    assert (down._refused, down.stale) == (0, 0), "no message came in"


def test_curve_refuses_a_peer_with_another_jobs_keys(make):
    other = Security.generate()
    down, intruder = make("down", tcp=True), make("up", tcp=True, security=other)
    down.accept(7, "up")
    intruder.connect(7, down.address)
    with pytest.raises(ProtocolError, match="channel 7: its receiver rejected the connection"):
        until(lambda _: intruder.send(7, Watermark(666)), down, intruder)
    assert down.refused > 0
    up = make("up", tcp=True)
    up.connect(7, down.address)
    up.send(7, Watermark(1))
    assert receive(down, 1) == [(7, Watermark(1))]
    intruder.close(linger=0)
    assert not SocketFolder(other.job).path.exists()


def test_curve_lets_a_holder_of_the_jobs_keys_in(make, stranger, security):
    down = make("down")
    down.accept(7, "up")
    socket = stranger(down.address.tcp, b"up#0", (security.server_public, (security.client_public, security.client_secret)))
    socket.send(pack((1, 7, 0, 0, 5)))
    assert receive(down, 1) == [(7, Watermark(5))]
