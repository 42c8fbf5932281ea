"""The index of timers: which are due, and in which order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.keyed_state.kinds.timers import Timers


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc"))), st.integers(0, 20), st.integers(1, 5))
def test_timers_fire_by_time_and_then_in_the_order_of_insertion(noted, until, most):
    timers, found = Timers(), []
    for at, key in noted:
        timers.add(at, key)
    while keys := timers.due(until, most):
        while (due := timers.pop(until, keys)) is not None:
            found.append(due)
    assert found == sorted((entry for entry in noted if entry[0] <= until), key=lambda entry: entry[0])


def test_key_that_is_not_asked_for_stops_the_taking():
    timers = Timers()
    for at, key in ((1, "a"), (2, "b"), (3, "a")):
        timers.add(at, key)
    assert timers.due(9, most=1) == ["a"]
    assert timers.pop(9, ["a"]) == (1, "a")
    assert timers.pop(9, ["a"]) is None
    assert timers.due(2, most=9) == ["b"]
