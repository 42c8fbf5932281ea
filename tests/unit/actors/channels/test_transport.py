"""Messages between workers arrive whole and in order, and closing a transport leaves nothing behind."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from transports import LIMITS, PATIENCE, TCP, numbers, receive, shown

from evenflow.actors.channels.socket_folder import SocketFolder
from evenflow.actors.channels.transport import Transport
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ClusterError, JobError
from evenflow.engine.protocol.elements import End, Watermark


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


def test_elements_for_a_receiver_that_has_left_block_nothing(pair):
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


def test_a_channel_can_not_be_opened_twice(pair):
    up, down = pair
    with pytest.raises(ValueError, match="channel 7 is connected already"):
        up.connect(7, down.address)
    with pytest.raises(ValueError, match="channel 7 is accepted already"):
        down.accept(7, "other")


def test_a_host_that_is_not_of_this_machine_is_an_error_and_leaves_nothing_behind(security):
    with pytest.raises(ClusterError, match=r"can't listen on 192\.0\.2\.1"):
        Transport("map[0]", 0, security, LIMITS, host="192.0.2.1")
    assert not SocketFolder(security.job).path.exists()
    assert not [thread for thread in threading.enumerate() if "gatekeeper" in thread.name]


def test_it_listens_on_loopback_by_default(make):
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
    descriptors, threads = len(list(Path("/dev/fd").iterdir())), set(threading.enumerate())
    run_and_close(security)
    assert len(list(Path("/dev/fd").iterdir())) <= descriptors, "those of earlier tests may be closed meanwhile"
    assert set(threading.enumerate()) <= threads
    assert not SocketFolder(security.job).path.exists()
