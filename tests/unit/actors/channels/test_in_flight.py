"""The limit of rows in flight on a channel follows from its speed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.channels.in_flight import DRAIN_SECONDS, FIRST, PIECES, InFlightLimit


class Receiver:
    """A receiver that processes `rate` rows per second, one batch after the other, and reports each batch at once."""

    def __init__(self, limit):
        self.limit, self.now, self.under_way, self.done = limit, 0.0, [], 0

    def fill(self):
        """Send pieces as long as there is room."""
        while self.limit.admits(self.limit.piece):
            self.under_way.append(self.limit.piece)
            self.limit.spend(self.limit.piece, self.now)

    def run(self, rate, seconds):
        until = self.now + seconds
        while self.now < until:
            self.fill()
            self.now += self.under_way.pop(0) / rate
            self.done += 1
            self.limit.done(self.done, self.now)

    @property
    def rows(self):
        return sum(self.under_way)


@pytest.mark.parametrize("rate", [1.0, 20.0, 200.0, 10_000.0, 5e6])
def test_records_in_flight_take_the_same_time_whatever_a_record_costs(rate):
    receiver = Receiver(InFlightLimit())
    receiver.run(rate, 10 * FIRST / rate + 10)
    receiver.fill()
    assert receiver.rows / rate <= max(DRAIN_SECONDS, 1 / rate) * 1.01
    assert receiver.rows / rate >= DRAIN_SECONDS / 2 or receiver.rows == 1


@pytest.mark.parametrize(("before", "after"), [(1000.0, 10.0), (100.0, 50_000.0)])
def test_window_follows_a_receiver_that_becomes_slower_or_faster(before, after):
    receiver = Receiver(InFlightLimit())
    receiver.run(before, 20)
    receiver.run(after, 2 * DRAIN_SECONDS * before / after + 20)
    assert receiver.limit.rows == pytest.approx(after * DRAIN_SECONDS, rel=0.3)


def test_pieces_are_a_part_of_the_window_and_never_empty():
    limit = InFlightLimit()
    assert limit.piece == FIRST // PIECES
    limit.spend(FIRST, 0.0)
    limit.done(1, 1_000_000.0)
    assert (limit.rows, limit.piece) == (1.0, 1)


def test_batch_larger_than_the_window_travels_alone():
    limit = InFlightLimit()
    assert limit.admits(10 * FIRST)
    limit.spend(10 * FIRST, 0.0)
    assert not limit.admits(1)


def test_fast_channel_with_little_to_send_is_never_narrowed():
    limit = InFlightLimit()
    for i in range(100):
        limit.spend(1, float(i))
        limit.done(i + 1, i + 0.005)
        assert limit.rows >= FIRST


def test_batches_that_were_never_sent_are_an_error():
    limit = InFlightLimit()
    limit.spend(1, 0.0)
    with pytest.raises(ValueError, match="2 batches were processed, 1 sent"):
        limit.done(2, 1.0)


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0.0, 100.0), st.booleans())))
def test_one_row_may_always_leave_once_all_are_done(steps):
    limit, now, sent = InFlightLimit(), 0.0, 0
    for rows, later, done in steps:
        now += later
        if limit.admits(rows):
            limit.spend(rows, now)
            sent += 1
        if done:
            limit.done(sent, now)
    limit.done(sent, now)
    assert limit.admits(1)
    assert limit.piece >= 1
