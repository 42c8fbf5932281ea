"""The order of a task's channels: the one furthest behind in event time, and sometimes the longest waiting one."""

from __future__ import annotations

from collections import deque

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.task.input_queues import JOINED, TURNS, InputQueues
from evenflow.engine.batch import Batch
from evenflow.engine.protocol.elements import MIN_TIME, Barrier, Rewind, Watermark
from evenflow.engine.protocol.ids import CheckpointNumber


def batch(number=0):
    return Batch(pa.record_batch({"n": [number]}))


def filled(*elements):
    queues = InputQueues()
    for channel, element in elements:
        queues.put(channel, element)
    return queues


def taken(queues):
    return [queues.take()[0] for _ in range(len(queues))]


def test_channel_furthest_behind_goes_first():
    queues = filled((1, Watermark(70)), (2, Watermark(50)))
    taken(queues)
    for channel in (1, 1, 2):
        queues.put(channel, batch())
    assert taken(queues)[0] == 2


def test_channel_without_a_watermark_counts_as_behind_all():
    queues = filled((1, Watermark(70)))
    taken(queues)
    queues.put(1, batch())
    queues.put(2, batch())
    assert taken(queues) == [2, 1]


def test_channel_that_rewinds_is_behind_again():
    queues = filled((1, Watermark(70)), (2, Watermark(50)), (1, Rewind(10)), (2, Watermark(51)))
    taken(queues)
    queues.put(2, batch())
    queues.put(1, batch())
    assert queues.take()[0] == 1


def test_equal_times_go_in_order_of_arrival():
    assert taken(filled((3, batch()), (1, batch()), (2, batch()))) == [3, 1, 2]


def test_signal_at_the_head_of_its_channel_goes_before_batches():
    barrier = Barrier(CheckpointNumber(1))
    queues = filled((1, Watermark(50)), (2, Watermark(90)))
    taken(queues)
    queues.put(1, batch())
    queues.put(2, barrier)
    assert queues.take() == (2, barrier)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=60))
def test_each_channel_is_first_in_first_out_and_nothing_is_lost(arrivals):
    elements = [(channel, Watermark(time) if time else batch(place)) for place, (channel, time) in enumerate(arrivals)]
    queues = filled(*elements)
    left = {channel: deque(element for other, element in elements if other == channel) for channel in range(4)}
    while len(queues):
        channel, element = queues.take()
        assert element is left[channel].popleft()
    assert not any(left.values())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=60))
def test_every_few_turns_the_element_that_has_waited_longest_goes_first(times):
    elements = [(channel, Watermark(time)) for channel, time in times] + [(channel, batch()) for channel, _ in times]
    queues, waiting, passed = filled(*elements), list(elements), 0
    while len(queues):
        oldest, found = waiting[0][1], queues.take()
        waiting.remove(next(entry for entry in waiting if entry[1] is found[1]))
        passed = 0 if found[1] is oldest else passed + 1
        assert passed < TURNS


@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 12), st.integers(0, 9))), max_size=400))
def test_turn_is_that_of_the_rule_looked_up_in_all_channels(script):
    """None takes an element; a channel with a time gets a batch and a watermark."""
    queues, waiting, times, number, turn = InputQueues(), {}, {}, 0, 0

    def put(channel, element):
        nonlocal number
        queues.put(channel, element)
        waiting.setdefault(channel, deque()).append((number, element))
        number += 1

    def place(channel):
        arrived, head = waiting[channel][0]
        return isinstance(head, Batch), times.get(channel, MIN_TIME), arrived

    for step in [*script, *[None] * len(script) * 2]:
        if step is not None:
            put(step[0], batch())
            put(step[0], Watermark(step[1]))
        elif waiting:
            turn += 1
            expected = min(waiting, key=place if turn % TURNS else lambda channel: waiting[channel][0][0])
            _, element = waiting[expected].popleft()
            if not waiting[expected]:
                del waiting[expected]
            if isinstance(element, Watermark):
                times[expected] = element.time
            assert queues.take() == (expected, element)
    assert not len(queues)


def test_batches_behind_each_other_are_taken_together_up_to_a_signal():
    parts, other = [batch(number) for number in range(4)], batch()
    queues = filled((1, parts[0]), (2, other), (1, parts[1]), (1, parts[2]), (1, Watermark(50)), (1, parts[3]))
    channel, first = queues.take()
    assert (channel, first) == (1, parts[0])
    assert queues.take_more(channel, first) == [parts[1], parts[2]]
    assert [queues.take() for _ in range(len(queues))] == [(2, other), (1, Watermark(50)), (1, parts[3])]


def test_nothing_is_taken_with_a_batch_of_many_rows_other_columns_or_event_times():
    many = Batch(pa.record_batch({"n": np.arange(JOINED)}))
    timed = Batch(batch().rows, np.zeros(1, np.int64))
    for head, behind in [(many, batch()), (batch(), many), (batch(), Batch(pa.record_batch({"m": [1]}))), (batch(), timed)]:
        queues = filled((1, head), (1, behind))
        assert queues.take_more(*queues.take()) == []
        assert queues.take() == (1, behind)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=60))
def test_batches_that_are_taken_together_keep_their_order_and_nothing_is_lost(arrivals):
    elements = [(channel, Watermark(time) if time else batch(place)) for place, (channel, time) in enumerate(arrivals)]
    queues, found = filled(*elements), {channel: [] for channel in range(4)}
    while len(queues):
        channel, element = queues.take()
        found[channel] += [element, *(queues.take_more(channel, element) if isinstance(element, Batch) else ())]
    assert found == {channel: [element for other, element in elements if other == channel] for channel in range(4)}


def test_reader_with_more_credit_does_not_run_away():
    """Two senders always use all their credit, 32 batches and 8 batches.

    Each batch is a second of event time.
    """
    queues, sent = InputQueues(), {1: 0, 2: 0}

    def send(channel):
        sent[channel] += 1
        queues.put(channel, batch())
        queues.put(channel, Watermark(sent[channel]))

    for channel, credit in ((1, 32), (2, 8)):
        for _ in range(credit):
            send(channel)
    for _ in range(10_000):
        channel, element = queues.take()
        if isinstance(element, Batch):
            send(channel)
    assert abs(sent[1] - sent[2]) < 32
