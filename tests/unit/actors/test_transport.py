from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zmq

from evenflow.actors.credit import ChannelLimits
from evenflow.actors.drain import FIRST, PIECES
from evenflow.actors.frames import ChannelEncoder
from evenflow.actors.headers import pack
from evenflow.actors.security import Security
from evenflow.actors.socket_folder import SocketFolder
from evenflow.actors.transport import Transport
from evenflow.engine.batch import Batch
from evenflow.engine.elements import Barrier, End, Watermark
from evenflow.engine.errors import JobError, ProtocolError

PATIENCE = 30.0
LIMITS = ChannelLimits(credit_batches=4, credit_bytes=1 << 20)
REFUSALS = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_DISCONNECTED
TCP = pytest.mark.parametrize("tcp", [False, True], ids=["ipc", "tcp"])


@pytest.fixture
def security():
    return Security.generate()


@pytest.fixture
def make(security):
    """Makes transports of one job and closes them at the end; then nothing of the job may be left."""
    made = []

    def make_transport(name, *, attempt=0, limits=LIMITS, tcp=False, security=security):
        made.append(Transport(name, attempt, security, limits, prefer_tcp=tcp))
        return made[-1]

    yield make_transport
    for transport in made:
        transport.close(linger=0)
    assert not SocketFolder(security.job).path.exists()


@pytest.fixture
def pair(make):
    """A transport that sends on channel 7, and the one that receives."""
    up, down = make("up"), make("down")
    down.accept(7, "up")
    up.connect(7, down.address)
    return up, down


def numbers(first, rows=1):
    return Batch(pa.record_batch({"n": np.arange(first, first + rows)}))


def shown(element):
    return element.rows.column(0)[0].as_py() if isinstance(element, Batch) else element


def until(condition, *transports):
    """Polls the transports until the condition holds; returns what they received."""
    received, deadline = [], time.monotonic() + PATIENCE
    while not condition(received):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain; received {received}"
        for transport in transports:
            received += [(channel, shown(element)) for channel, element in transport.poll(0.01)]
    return received


def receive(transport, count):
    return until(lambda received: len(received) >= count, transport)


@pytest.fixture
def stranger():
    """Makes bare sockets that are connected to an address, with any routing id, keys and messages."""
    context = zmq.Context()
    sockets = []

    def connect(endpoint, routing_id=b"stranger", keys=None):
        socket = context.socket(zmq.DEALER)
        socket.linger = 0
        socket.routing_id = routing_id
        if keys is not None:
            socket.curve_serverkey, (socket.curve_publickey, socket.curve_secretkey) = keys
        socket.get_monitor_socket(REFUSALS)
        socket.connect(endpoint)
        sockets.append(socket)
        return socket

    yield connect
    context.destroy(linger=0)


@TCP
def test_order_is_kept_on_each_of_many_channels(make, tcp):
    up, down = make("up", tcp=tcp), make("down", tcp=tcp)
    for channel in range(3):
        down.accept(channel, "up")
        up.connect(channel, down.address)
    for i in range(300):
        up.send(i % 3, numbers(i) if i % 2 else Watermark(i))
    got, deadline = [], time.monotonic() + PATIENCE
    while len(got) < 300:
        assert time.monotonic() < deadline
        for channel, element in down.poll(0.01):
            got.append((channel, element.time if isinstance(element, Watermark) else shown(element)))
            down.consumed(channel, element)
        up.poll(0)
    for channel in range(3):
        assert [value for at, value in got if at == channel] == list(range(channel, 300, 3))


@TCP
def test_large_batches_with_event_times_arrive_whole(make, tcp):
    up, down = make("up", tcp=tcp), make("down", tcp=tcp)
    down.accept(7, "up")
    up.connect(7, down.address)
    rows = 60_000
    sent = Batch(pa.record_batch({"n": np.arange(rows), "s": [str(i) for i in range(rows)]}), np.arange(rows) * 5)
    up.send(7, sent)
    [(channel, got)] = down.poll(PATIENCE)
    assert channel == 7
    assert got.rows.equals(sent.rows)
    assert np.array_equal(got.times, sent.times)


def test_a_sender_without_credit_keeps_its_batches_and_goes_on_when_they_are_processed(pair):
    up, down = pair
    for i in range(10):
        up.send(7, numbers(i))
    assert up.blocked
    assert not up.drained
    assert up.queued > 0
    for window in ([0, 1, 2, 3], [4, 5, 6, 7], [8, 9]):
        assert until(lambda received, window=window: len(received) >= len(window), up, down) == [(7, i) for i in window]
        assert up.poll(0) == down.poll(0) == [], "no more may be under way than there is credit for"
        for _ in window:
            down.consumed(7, numbers(0))
    assert up.drained
    assert not up.blocked
    assert up.queued == 0
    assert up.blocked_seconds > 0


def test_credit_in_bytes_holds_back_large_batches(make):
    limits = ChannelLimits(credit_batches=100, credit_bytes=20_000)
    up, down = make("up", limits=limits), make("down", limits=limits)
    down.accept(7, "up")
    up.connect(7, down.address)
    for i in range(4):
        up.send(7, numbers(i, rows=1000))
    assert receive(down, 2) == [(7, 0), (7, 1)]
    assert up.blocked
    down.consumed(7, numbers(0))
    assert until(bool, up, down) == [(7, 2)]


def test_a_batch_larger_than_all_credit_still_arrives(make):
    limits = ChannelLimits(credit_batches=4, credit_bytes=100)
    up, down = make("up", limits=limits), make("down", limits=limits)
    down.accept(7, "up")
    up.connect(7, down.address)
    for i in range(3):
        up.send(7, numbers(i, rows=1000))
    for i in range(3):
        assert until(bool, up, down) == [(7, i)]
        down.consumed(7, numbers(0))


def test_paced_channel_cuts_a_batch_into_pieces_that_arrive_in_order_before_what_follows(make):
    up, down = make("up"), make("down")
    down.accept(7, "up")
    up.connect(7, down.address, paced=True)
    up.send(7, numbers(0, rows=1_000))
    up.send(7, Barrier(1))
    received, deadline = [], time.monotonic() + PATIENCE
    while len(received) < 2 or received[-1] != Barrier(1):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain for the barrier; received {len(received)} elements"
        for channel, element in down.poll(0.01):
            down.consumed(channel, element)
            received.append(element)
        up.poll(0)
    rows = [value for batch in received[:-1] for value in batch.rows["n"].to_pylist()]
    assert (rows, received[0].num_rows) == (list(range(1_000)), FIRST // PIECES)


def test_batch_is_cut_by_what_is_known_of_its_receiver_when_it_leaves(make):
    up, down = make("up"), make("down", limits=ChannelLimits(credit_batches=1_000))
    down.accept(7, "up")
    up.connect(7, down.address, paced=True)
    up.send(7, numbers(0, rows=100 * FIRST))
    sizes, deadline = [], time.monotonic() + PATIENCE
    while sum(sizes) < 100 * FIRST:
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain for all rows; {sum(sizes)} came"
        for channel, element in down.poll(0.01):
            down.consumed(channel, element)
            sizes.append(element.num_rows)
        up.poll(0)
    assert sizes[:PIECES] == [FIRST // PIECES] * PIECES
    assert sizes[PIECES + 1] > FIRST, "the first grant shows that the receiver is fast"


def test_paced_channel_holds_back_more_than_its_window(make):
    up, down = make("up"), make("down", limits=ChannelLimits(credit_batches=1_000))
    down.accept(7, "up")
    up.connect(7, down.address, paced=True)
    up.send(7, numbers(0, rows=FIRST))
    assert not up.blocked
    up.send(7, numbers(0))
    assert up.blocked


def test_signals_need_no_credit(pair):
    up, down = pair
    for i in range(4):
        up.send(7, numbers(i))
    for i in range(20):
        up.send(7, Watermark(i))
    up.send(7, Barrier(1))
    assert up.drained
    assert receive(down, 25)[4:] == [*((7, Watermark(i)) for i in range(20)), (7, Barrier(1))]


def test_signals_stay_behind_batches_that_wait_for_credit(pair):
    up, down = pair
    for i in range(6):
        up.send(7, numbers(i))
        up.send(7, Watermark(i))
    assert receive(down, 8)[-1] == (7, Watermark(3))
    assert down.poll(0) == []
    for _ in range(4):
        down.consumed(7, numbers(0))
    assert until(lambda received: len(received) >= 4, up, down) == [(7, 4), (7, Watermark(4)), (7, 5), (7, Watermark(5))]


def test_a_blocked_channel_does_not_hold_back_another_one(pair):
    up, down = pair
    down.accept(8, "up")
    up.connect(8, down.address)
    for i in range(5):
        up.send(7, numbers(i))
    up.send(8, numbers(100))
    assert receive(down, 5)[-1] == (8, 100)


def test_a_poll_that_waits_for_credit_returns_with_it(pair):
    up, down = pair
    for i in range(5):
        up.send(7, numbers(i))
    receive(down, 4)
    for _ in range(4):
        down.consumed(7, numbers(0))
    assert up.poll(PATIENCE) == []
    assert not up.blocked


def test_a_little_credit_comes_back_when_the_receiver_is_idle(make):
    limits = ChannelLimits(credit_batches=100, credit_bytes=20_000)
    up, down = make("up", limits=limits), make("down", limits=limits)
    down.accept(7, "up")
    up.connect(7, down.address)
    up.send(7, numbers(0, rows=500))
    up.send(7, numbers(1, rows=2400))
    receive(down, 1)
    down.consumed(7, numbers(0))
    assert up.blocked
    down.poll(0)
    assert until(bool, up, down) == [(7, 1)]


def test_what_waits_for_a_receiver_that_has_left_blocks_nothing_any_more(pair):
    up, _ = pair
    for n in range(LIMITS.credit_batches + 2):
        up.send(7, numbers(n))
    assert up.blocked
    up.abandon(7)
    assert not up.blocked
    assert up.queued == 0


@TCP
def test_the_socket_of_a_retired_channel_is_closed_once_all_has_arrived(make, tcp):
    up, down = make("up", tcp=tcp), make("down", tcp=tcp)
    down.accept(7, "up")
    up.connect(7, down.address)
    sent = [*(numbers(n) for n in range(LIMITS.credit_batches + 2)), End()]
    for element in sent:
        up.send(7, element)
    up.retire(7)
    assert up._sockets.connected == 1
    received, deadline = [], time.monotonic() + PATIENCE
    while len(received) < len(sent):
        assert time.monotonic() < deadline
        for channel, element in down.poll(0.01):
            received.append(element)
            down.consumed(channel, element)
        up.poll(0.01)
    assert up._sockets.connected == 0
    assert isinstance(received[-1], End)
    assert [element.rows["n"][0].as_py() for element in received[:-1]] == list(range(len(sent) - 1))
    assert (up.refused, down.refused) == (0, 0)


def test_a_transport_that_listens_elsewhere_too_keeps_its_peers_and_gets_others(make):
    up, other, down = make("up"), make("other", tcp=True), make("down")
    down.accept(7, "up")
    up.connect(7, down.address)
    up.send(7, Watermark(1))
    before = down.address
    after = down.listen("127.0.0.1")
    assert after == down.address
    assert after.tcp != before.tcp
    down.accept(8, "up")
    down.accept(9, "other")
    up.connect(8, after)
    other.connect(9, after)
    up.send(7, Watermark(2))
    up.send(8, Watermark(3))
    other.send(9, Watermark(4))
    received, deadline = [], time.monotonic() + PATIENCE
    while len(received) < 4:
        assert time.monotonic() < deadline
        received += down.poll(0.1)
    assert [element for channel, element in received if channel == 7] == [Watermark(1), Watermark(2)]
    assert {channel for channel, _ in received} == {7, 8, 9}
    assert up._sockets.connected == 1


def test_a_socket_stays_while_another_channel_uses_it_and_late_credit_for_a_retired_one_is_no_offence(pair):
    up, down = pair
    down.accept(8, "up")
    up.connect(8, down.address)
    up.send(7, numbers(0))
    up.retire(7)
    assert up._sockets.connected == 1
    up.send(8, numbers(1))
    received, deadline = [], time.monotonic() + PATIENCE
    while len(received) < 2:
        assert time.monotonic() < deadline
        for channel, element in down.poll(0.01):
            received.append(channel)
            down.consumed(channel, element)
    down.poll(0.01)
    up.poll(0.05)
    assert received == [7, 8]
    assert up.refused == 0
    up.retire(8)
    assert up._sockets.connected == 0


def test_credit_for_a_batch_that_never_came_is_an_error(pair):
    _, down = pair
    with pytest.raises(ValueError, match="more batches were processed"):
        down.consumed(7, numbers(0))


def test_wake_from_another_thread_ends_a_poll(make):
    transport = make("map[0]")
    thread = threading.Thread(target=transport.wake)
    thread.start()
    assert transport.poll(PATIENCE * 100) == []
    thread.join()


def test_a_wake_before_the_poll_is_not_lost_and_counts_once(make):
    transport = make("map[0]")
    transport.wake()
    transport.wake()
    assert transport.poll(PATIENCE * 100) == []
    assert transport._waker.fileno() not in dict(transport._sockets.poll(0))


def test_flush_waits_until_the_last_batch_has_left(pair):
    up, down = pair
    for i in range(50):
        up.send(7, numbers(i))
    up.send(7, End())
    got = []

    def consume():
        while not got or got[-1] != End():
            for channel, element in down.poll(PATIENCE):
                got.append(shown(element))
                down.consumed(channel, element)

    thread = threading.Thread(target=consume)
    thread.start()
    up.flush(PATIENCE)
    assert up.drained
    up.close()
    thread.join()
    assert got == [*range(50), End()]


def test_flush_says_what_it_waited_for(pair):
    up, _ = pair
    for i in range(6):
        up.send(7, numbers(i))
    with pytest.raises(JobError, match=r"transport `up`: .* bytes still wait for credit on the channels \[7\]"):
        up.flush(0.01)


@TCP
def test_the_last_message_survives_closing(make, tcp):
    up, down = make("up", tcp=tcp), make("down", tcp=tcp)
    down.accept(7, "up")
    up.connect(7, down.address)
    up.send(7, numbers(1, rows=50_000))
    up.send(7, End())
    up.close()
    assert receive(down, 2) == [(7, 1), (7, End())]


def test_garbage_from_a_stranger_is_refused_and_counted_and_logged_once(pair, stranger, caplog):
    up, down = pair
    socket = stranger(down.address.ipc)
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
def test_a_broken_message_from_an_accepted_peer_fails_the_poll(make, stranger, message, problem):
    down = make("down")
    down.accept(7, "up")
    stranger(down.address.ipc, b"up#0").send_multipart(message)
    with pytest.raises(ProtocolError, match=f"transport `down`, from `up#0`: .*{problem}"):
        until(lambda _: down.refused, down)


def test_a_sender_that_ignores_its_credit_fails_the_poll(make, stranger):
    down, encoder = make("down"), ChannelEncoder(7, 0, "up")
    down.accept(7, "up")
    socket = stranger(down.address.ipc, b"up#0")
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
    intruder.send(pack((1, 7, 0, 0, 666)))
    assert intruder.get_monitor_socket().poll(PATIENCE * 1000), "the connection was not refused"
    up.send(7, Watermark(1))
    assert receive(down, 1) == [(7, Watermark(1))]
    assert (down.refused, down.stale) == (0, 0)


def test_curve_refuses_a_peer_with_another_jobs_keys(make):
    other = Security.generate()
    down, intruder = make("down", tcp=True), make("up", tcp=True, security=other)
    down.accept(7, "up")
    intruder.connect(7, down.address)
    intruder.send(7, Watermark(666))
    until(lambda _: down._sockets._gatekeeper.turned_away > 0, down, intruder)
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


def test_a_channel_can_not_be_opened_twice(pair):
    up, down = pair
    with pytest.raises(ValueError, match="channel 7 is connected already"):
        up.connect(7, down.address)
    with pytest.raises(ValueError, match="channel 7 is accepted already"):
        down.accept(7, "other")


def test_a_host_that_is_not_of_this_machine_is_an_error_and_leaves_nothing_behind(security):
    with pytest.raises(JobError, match=r"can't listen on 192\.0\.2\.1"):
        Transport("map[0]", 0, security, LIMITS, host="192.0.2.1")
    assert not SocketFolder(security.job).path.exists()
    assert not [thread for thread in threading.enumerate() if "gatekeeper" in thread.name]


def test_it_listens_on_loopback_unless_told_otherwise(make):
    assert make("map[0]").address.tcp.startswith("tcp://127.0.0.1:")


def run_and_close(security):
    with Transport("up", 0, security, LIMITS) as up, Transport("down", 0, security, LIMITS, prefer_tcp=True) as down:
        down.accept(7, "up")
        up.accept(8, "down")
        up.connect(7, down.address)
        down.connect(8, up.address)
        up.send(7, numbers(0, rows=20_000))
        down.send(8, Watermark(1))
        receive(down, 1)
        receive(up, 1)
        up.close()
        up.close()


def test_closing_leaves_no_socket_file_folder_or_thread_behind(security):
    run_and_close(security)  # pyzmq starts one thread for its whole process with the first large frame
    descriptors, threads = len(list(Path("/dev/fd").iterdir())), threading.active_count()
    run_and_close(security)
    assert len(list(Path("/dev/fd").iterdir())) == descriptors
    assert threading.active_count() == threads
    assert not SocketFolder(security.job).path.exists()
