"""Barriers that arrive on some channels before others."""

from __future__ import annotations

import pytest

from evenflow.engine.errors import ProtocolError
from evenflow.engine.protocol.elements import Barrier, End, Watermark
from evenflow.engine.task.alignment import Alignment


def test_it_is_complete_once_every_input_that_goes_on_has_the_barrier():
    alignment = Alignment("task")
    assert (alignment.begun, alignment.complete([])) == (False, None)
    alignment.arrive(1, Barrier(7))
    assert (alignment.begun, alignment.complete([1, 2])) == (True, None)
    assert alignment.complete([1]) == Barrier(7), "input 2 has ended"
    alignment.arrive(2, Barrier(7))
    assert alignment.complete([1, 2]) == Barrier(7)


def test_each_channel_s_elements_are_released_in_their_order():
    alignment = Alignment("task")
    alignment.arrive(2, Barrier(7))
    alignment.arrive(1, Barrier(7))
    alignment.hold(1, Watermark(1))
    alignment.hold(2, Watermark(2))
    alignment.hold(1, End())
    assert alignment.held == 3
    assert sorted(alignment.release(), key=lambda held: held[0]) == [(1, Watermark(1)), (1, End()), (2, Watermark(2))]
    assert (alignment.held, alignment.begun, alignment.channels, alignment.release()) == (0, False, set(), [])


def test_another_barrier_before_the_first_is_complete_is_an_error():
    alignment = Alignment("task")
    alignment.arrive(1, Barrier(7))
    with pytest.raises(ProtocolError, match="task task: barrier 8 on channel 2 while aligning 7"):
        alignment.arrive(2, Barrier(8))
    assert alignment.channels == {1}
