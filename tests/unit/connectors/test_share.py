from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.share import Share, share_out
from evenflow.engine.errors import FlowError

FAR = 300

histories = st.lists(st.tuples(st.integers(1, 5), st.lists(st.integers(0, 60), min_size=5, max_size=5)), max_size=5)
"""The numbers of readers in sequence, and how many numbers each of them emits."""


def shared_out(parallelism: int, history: list[tuple[int, list[int]]]) -> tuple[list[Share], list[int]]:
    """Return the final shares, and all numbers that were emitted."""
    shares, numbers = [Share.of(index, parallelism) for index in range(parallelism)], []
    for count, taken in history:
        shares = share_out(shares, count, "read")
        assert len(shares) == count
        for index, take in enumerate(taken[:count]):
            ascending = shares[index].below(10 * FAR).tolist()
            numbers += ascending[:take]
            shares[index] = shares[index].since(ascending[take])
    return shares, numbers


@given(st.integers(1, 5), histories)
def test_readers_give_every_number_once_however_they_are_shared_out(parallelism, history):
    shares, numbers = shared_out(parallelism, history)
    left = [number for share in shares for number in share.below(FAR).tolist()]
    beyond = [number for number in numbers if number >= FAR]
    assert sorted(numbers + left) == sorted([*range(FAR), *beyond])


@given(st.integers(1, 5), histories)
def test_taking_the_first_progression_bit_by_bit_gives_what_is_below_a_bound(parallelism, history):
    for share in shared_out(parallelism, history)[0]:
        numbers, rest = [], share
        while rest.lowest < FAR:
            taken = rest.first[:2]
            numbers += [number for number in taken if number < FAR]
            rest = rest.without_first(len(taken))
        assert sorted(numbers) == share.below(FAR).tolist() == [number for number in range(FAR) if number in share]


@given(st.integers(1, 5), histories)
def test_a_share_is_the_same_after_its_way_through_a_checkpoint(parallelism, history):
    shares, _ = shared_out(parallelism, history)
    assert [Share.decode(msgpack.unpackb(msgpack.packb(share.encode()))) for share in shares] == shares


@given(st.integers(1, 9), st.lists(st.integers(0, 10**7), min_size=9, max_size=9), st.integers(1, 9))
def test_the_numbers_that_a_slow_reader_has_left_are_shared_out_evenly(before, places, after):
    shares = [Share.of(index, before).since(place) for index, place in zip(range(before), places, strict=False)]
    loads = [sum(map(len, share.pieces)) for share in share_out(shares, after, "read")]
    assert loads == sorted(loads, reverse=True)
    assert loads[0] <= -(-sum(loads) // after)


def test_sharing_out_again_and_again_does_not_cut_a_share_to_pieces():
    shares = [Share.of(0, 2), Share.of(1, 2).since(10**6)]
    for parallelism in [3, 2, 5, 4] * 5:
        shares = share_out(shares, parallelism, "read")
    assert sum(len(share.pieces) for share in shares) < 20 * 3 * 5


def test_later_numbers_are_assigned_by_the_new_number_of_readers():
    shares = share_out([Share.of(0, 2).since(7), Share.of(1, 2)], 3, "read")
    assert all(number in shares[number % 3] for number in range(100, 200))


@pytest.mark.parametrize(
    "shares",
    [
        pytest.param([Share.of(0, 2)], id="one of two readers"),
        pytest.param([Share.of(0, 2), Share.of(0, 2)], id="a reader twice"),
        pytest.param([Share.of(0, 1), Share.of(1, 2)], id="of different times"),
        pytest.param([], id="none"),
    ],
)
def test_positions_that_do_not_belong_together_are_refused(shares):
    with pytest.raises(FlowError, match=r"operator `read`: these \d positions are not those of all its"):
        share_out(shares, 3, "read")
