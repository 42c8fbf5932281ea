"""Event times as datetimes, and what a function sees of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from evenflow.engine.functions.keyed_function import KeyContext
from evenflow.engine.keyed_state.kinds.key_record import KeyRecord
from evenflow.engine.keyed_state.kinds.timers import Timers
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME
from evenflow.engine.time.datetimes import as_datetime, as_microseconds
from evenflow.engine.time.event_time import EARLIEST, LATEST

LAST = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("time", [EARLIEST, -1, 0, 1_700_000_000_123_456, LATEST])
def test_every_event_time_is_a_datetime_and_back(time):
    assert as_microseconds(as_datetime(time)) == time


def test_times_outside_the_years_of_datetimes_are_the_first_and_the_last_one():
    assert (as_datetime(MIN_TIME), as_datetime(MAX_TIME)) == (datetime.min.replace(tzinfo=UTC), LAST)


def test_datetimes_with_a_zone_are_converted_and_those_without_are_utc():
    assert as_microseconds(datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=1)))) == as_microseconds(datetime(1970, 1, 1, 1))


def test_watermark_is_none_before_the_first_and_the_last_time_at_the_end():
    context = KeyContext(Timers(), Timers(), int)
    assert context.watermark is None
    context.advance(1)
    assert context.watermark == as_datetime(1)
    context.advance(MAX_TIME)
    assert context.watermark == LAST


def test_time_of_a_row_without_event_time_is_refused_with_what_to_do():
    context = KeyContext(Timers(), Timers(), int)
    context.bind("a", KeyRecord(), None)
    with pytest.raises(ValueError, match=r"context\.time needs event time: give the source event_time="):
        _ = context.time
