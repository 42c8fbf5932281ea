"""Numbered messages that overtake each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.protocol.messages import InOrder


@given(data=st.data(), count=st.integers(0, 12))
def test_messages_are_handled_once_and_in_order_however_they_arrive(data, count):
    arriving = data.draw(st.permutations([*range(count), *data.draw(st.lists(st.integers(0, max(count - 1, 0)), max_size=count))]))
    inbox, out = InOrder(), []
    for number in arriving:
        out += inbox.put(number, f"message {number}")
        assert out == [f"message {i}" for i in range(len(out))]
    assert len(out) == (max(count, len(set(arriving))))


def test_message_waits_for_the_one_before_it():
    inbox = InOrder()
    assert inbox.put(1, "b") == []
    assert inbox.put(2, "c") == []
    assert inbox.put(0, "a") == ["a", "b", "c"]


def test_repeated_message_is_dropped():
    inbox = InOrder()
    assert inbox.put(0, "a") == ["a"]
    assert inbox.put(0, "a") == []
    assert inbox.put(2, "c") == inbox.put(2, "c") == []
    assert inbox.put(1, "b") == ["b", "c"]
