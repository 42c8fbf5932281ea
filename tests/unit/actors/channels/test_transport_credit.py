"""A sender without credit holds back batches, and nothing else."""

from __future__ import annotations

import time

import pytest
from transports import PATIENCE, numbers, receive, until

from evenflow.actors.channels.credit import ChannelLimits
from evenflow.actors.channels.in_flight import FIRST, PIECES
from evenflow.engine.protocol.elements import Barrier, Watermark


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
    assert max(sizes[PIECES:]) > FIRST, "grants show that the receiver is fast"


def test_paced_channel_holds_back_more_than_its_limit(make):
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


def test_a_socket_stays_while_another_channel_uses_it_and_late_credit_is_not_refused(pair):
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
