"""What may be under way on a channel follows from how fast it leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.drain import DRAIN, FIRST, PIECES, DrainWindow


class Receiver:
    """Processes `rate` rows a second, one batch after the other, and says of each that it is done as soon as it is."""

    def __init__(self, window):
        self.window, self.now, self.under_way, self.done = window, 0.0, [], 0

    def fill(self):
        """Send pieces for as long as there is room."""
        while self.window.admits(self.window.piece):
            self.under_way.append(self.window.piece)
            self.window.sent(self.window.piece, self.now)

    def run(self, rate, seconds):
        until = self.now + seconds
        while self.now < until:
            self.fill()
            self.now += self.under_way.pop(0) / rate
            self.done += 1
            self.window.done(self.done, self.now)

    @property
    def rows(self):
        return sum(self.under_way)


@pytest.mark.parametrize("rate", [1.0, 20.0, 200.0, 10_000.0, 5e6])
def test_what_is_under_way_takes_as_long_whatever_a_record_costs(rate):
    receiver = Receiver(DrainWindow())
    receiver.run(rate, 10 * FIRST / rate + 10)
    receiver.fill()
    assert receiver.rows / rate <= max(DRAIN, 1 / rate) * 1.01
    assert receiver.rows / rate >= DRAIN / 2 or receiver.rows == 1


@pytest.mark.parametrize(("before", "after"), [(1000.0, 10.0), (100.0, 50_000.0)])
def test_window_follows_a_receiver_that_becomes_slower_or_faster(before, after):
    receiver = Receiver(DrainWindow())
    receiver.run(before, 20)
    receiver.run(after, 2 * DRAIN * before / after + 20)
    assert receiver.window.rows == pytest.approx(after * DRAIN, rel=0.3)


def test_pieces_are_a_part_of_the_window_and_never_empty():
    window = DrainWindow()
    assert window.piece == FIRST // PIECES
    window.sent(FIRST, 0.0)
    window.done(1, 1_000_000.0)
    assert (window.rows, window.piece) == (1.0, 1)


def test_batch_larger_than_the_window_travels_alone():
    window = DrainWindow()
    assert window.admits(10 * FIRST)
    window.sent(10 * FIRST, 0.0)
    assert not window.admits(1)


def test_fast_channel_with_little_to_send_is_never_narrowed():
    window = DrainWindow()
    for i in range(100):
        window.sent(1, float(i))
        window.done(i + 1, i + 0.005)
        assert window.rows >= FIRST


def test_batches_that_were_never_sent_are_an_error():
    window = DrainWindow()
    window.sent(1, 0.0)
    with pytest.raises(ValueError, match="2 batches were processed, 1 sent"):
        window.done(2, 1.0)


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0.0, 100.0), st.booleans())))
def test_one_row_may_always_leave_once_all_are_done(steps):
    window, now, sent = DrainWindow(), 0.0, 0
    for rows, later, done in steps:
        now += later
        if window.admits(rows):
            window.sent(rows, now)
            sent += 1
        if done:
            window.done(sent, now)
    window.done(sent, now)
    assert window.admits(1)
    assert window.piece >= 1
