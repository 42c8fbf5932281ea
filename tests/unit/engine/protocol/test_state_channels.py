"""Ids of channels for state: every pair of workers has its own, and no channel of records has one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.channels.headers import MAX_NUMBER, number, pack, unpack
from evenflow.engine.protocol.state_channels import is_state_channel, receiver_of, state_channel

NUMBERS = st.integers(0, 2**31 - 1)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_two_pairs_of_workers_never_share_a_channel(sender, receiver, another, other):
    same = (sender, receiver) == (another, other)
    assert (state_channel(sender, receiver) == state_channel(another, other)) is same


@given(NUMBERS, NUMBERS)
def test_channel_leads_to_its_receiver_and_fits_a_message(sender, receiver):
    channel = state_channel(sender, receiver)
    assert is_state_channel(channel)
    assert receiver_of(channel) == receiver
    assert unpack(pack((number(channel, "channel"),))) == (channel,)
    assert channel <= MAX_NUMBER


@given(st.integers(0, 2**61))
def test_channels_of_records_are_not_for_state(channel):
    assert not is_state_channel(channel)
