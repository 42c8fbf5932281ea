from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.channels.credit import ChannelLimits, ReceiverCredit, SenderCredit
from evenflow.engine.errors import FlowError, ProtocolError

LIMITS = ChannelLimits(credit_batches=4, credit_bytes=1000)


def test_a_batch_larger_than_all_credit_travels_alone():
    sender, receiver = SenderCredit(LIMITS), ReceiverCredit(LIMITS)
    sender.spend(5000)
    receiver.arrived(5000)
    assert not sender.admits(1)
    assert receiver.processed()
    sender.restore(*receiver.grant())
    assert sender.admits(5000)


def test_a_grant_waits_until_half_of_the_credit_is_used():
    receiver = ReceiverCredit(LIMITS)
    for _ in range(3):
        receiver.arrived(10)
    assert [receiver.processed(), receiver.processed()] == [False, True]
    assert receiver.grant() == (2, 20)
    assert not receiver.processed()


def test_a_large_batch_is_half_of_the_credit():
    receiver = ReceiverCredit(LIMITS)
    receiver.arrived(500)
    assert receiver.processed()


@pytest.mark.parametrize("sizes", [pytest.param([1] * 5, id="batches"), pytest.param([600, 600], id="bytes")])
def test_a_sender_that_overdraws_is_found_out(sizes):
    receiver = ReceiverCredit(LIMITS)
    for size in sizes[:-1]:
        receiver.arrived(size)
    with pytest.raises(ProtocolError, match="without credit"):
        receiver.arrived(sizes[-1])


@pytest.mark.parametrize(
    "total",
    [
        pytest.param((3, 20), id="batches never sent"),
        pytest.param((2, 21), id="bytes never sent"),
        pytest.param((0, 0), id="less than before"),
    ],
)
def test_credit_that_was_never_spent_can_not_come_back(total):
    sender = SenderCredit(LIMITS)
    sender.spend(10)
    sender.spend(10)
    sender.restore(1, 10)
    with pytest.raises(ProtocolError):
        sender.restore(*total)
    sender.restore(2, 20)


def test_more_can_not_be_processed_than_came_in():
    with pytest.raises(ValueError, match="more batches"):
        ReceiverCredit(LIMITS).processed()


@pytest.mark.parametrize("limits", [(0, 1), (1, 0)])
def test_limits_without_credit_are_refused(limits):
    with pytest.raises(FlowError, match="at least 1 batch"):
        ChannelLimits(*limits)


@given(st.lists(st.tuples(st.integers(1, 1500), st.booleans(), st.booleans())), st.integers(1, 5), st.integers(1, 2000))
def test_limits_hold_and_credit_always_comes_back(steps, batches, size):
    limits = ChannelLimits(batches, size)
    sender, receiver, under_way = SenderCredit(limits), ReceiverCredit(limits), []
    for size_of_batch, process, grant in steps:
        if sender.admits(size_of_batch):
            sender.spend(size_of_batch)
            receiver.arrived(size_of_batch)
            under_way.append(size_of_batch)
        assert len(under_way) <= 1 or (len(under_way) <= batches and sum(under_way) <= size)
        if process and under_way:
            under_way.pop(0)
            if receiver.processed() or grant:
                sender.restore(*receiver.grant())
    for _ in under_way:
        receiver.processed()
    sender.restore(*receiver.grant())
    assert sender.admits(10**9)
