"""Event time over the input channels of a task."""

from __future__ import annotations

from evenflow.engine.protocol.elements import MIN_TIME
from evenflow.engine.task.task_event_time import TaskEventTime


def at(**times: int) -> TaskEventTime:
    """Return the event time over channels `c1`, `c2`, ... with these watermarks."""
    time = TaskEventTime([int(name[1:]) for name in times])
    for name, said in times.items():
        time.observe(int(name[1:]), said)
    return time


def test_it_is_that_of_the_slowest_channel():
    assert at(c1=50, c2=20, c3=70).over_channels == 20
    assert TaskEventTime([1, 2]).over_channels == MIN_TIME


def test_watermark_that_goes_back_changes_nothing():
    time = at(c1=50)
    time.observe(1, 10)
    assert time.over_channels == 50


def test_channel_that_has_ended_does_not_count():
    time = at(c1=50, c2=20)
    time.end(2)
    assert time.over_channels == 50
    assert time.channels == {1: 50}


def test_channel_that_joins_holds_event_time_back_until_it_speaks():
    time = at(c1=50)
    assert time.rises_to(time.over_channels)
    time.add(2)
    assert not time.rises_to(time.over_channels)
    time.observe(2, 60)
    time.observe(1, 70)
    assert time.rises_to(time.over_channels)
    assert time.watermark == 60


def test_frozen_channel_counts_as_it_was_also_after_its_end():
    time = at(c1=50, c2=20)
    time.freeze(2)
    time.observe(2, 90)
    assert time.over_channels == 20
    time.end(2)
    assert (time.frozen, time.over_channels) == (True, 20)
    time.thaw()
    assert (time.frozen, time.over_channels) == (False, 50)


def test_it_stands_still_until_every_expected_input_has_sent_a_new_watermark():
    time = at(c1=50, c2=50)
    assert time.rises_to(50)
    time.expect([1, 2, 77])
    time.rewind(1, 60)
    assert (time.all_rewound(), time.rises_to(60)) == (False, False)
    time.rewind(2, 30)
    assert (time.all_rewound(), time.all_rewound()) == (True, False)
    assert not time.rises_to(time.over_channels)
    time.observe(2, 55)
    assert time.rises_to(time.over_channels)
    assert time.watermark == 55


def test_end_of_an_expected_input_counts_as_a_new_watermark():
    time = at(c1=50, c2=50)
    time.expect([1])
    time.end(1)
    assert time.all_rewound()
