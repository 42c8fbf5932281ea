"""Processing-time timers of a function with states, driven by hand, over every backend in a process."""

from __future__ import annotations

from datetime import timedelta

import pytest

import evenflow as ef
from evenflow.engine.errors import RecordError
from evenflow.engine.keyed_state.kinds.key_record import KeyRecord, pack_records, unpack_records
from evenflow.engine.operators.processing.process import Process
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.protocol.routing import Move
from evenflow.engine.time.datetimes import as_datetime
from evenflow.state.backends.settings import StateSettings
from evenflow.state.packing import pack_values

SECOND = 1_000_000


@pytest.fixture(params=["memory", "lmdb"])
def step(request, drive):
    """Return a factory of driven operators, which are closed at the end."""
    opened = []

    def make(function, index=0):
        driven = drive(Process(("k",), function), StateSettings(request.param, job="processing-timers"), index)
        opened.append(driven.operator)
        return driven

    yield make
    for operator in opened:
        operator.close()


class Alarms(ef.KeyedFunction):
    """A function that sets processing-time timers after the seconds that a row lists, and cancels those below zero."""

    fired = ef.value_state(default=0)

    def on_row(self, key, row, context):
        assert context.time_domain is None
        for delay in row["after"]:
            if delay < 0:
                context.cancel(context.now + timedelta(seconds=-delay), time_domain="processing")
            else:
                assert context.timer_after(delay) == context.now + timedelta(seconds=delay)
        if row.get("at") is not None:
            context.timer(as_datetime(row["at"] * SECOND))
        yield {"k": key, "at": None, "domain": None, "ended": context.ended, "fired": self.fired}

    def on_timer(self, key, time, context):
        self.fired += 1
        yield {"k": key, "at": int(time.timestamp()), "domain": context.time_domain, "ended": context.ended, "fired": self.fired}


def alarms(rows):
    return [(row["k"], row["at"]) for row in rows if row["at"] is not None]


def test_timers_fire_by_time_once_the_clock_has_reached_them(step):
    driven = step(Alarms())
    driven.clock = 100 * SECOND
    driven.process({"k": ["b", "a", "c"], "after": [[30, 10], [20, 10], [10]]})
    assert driven.tick(110 * SECOND - 1) == []
    assert alarms(driven.tick(120 * SECOND)) == [("b", 110), ("a", 110), ("c", 110), ("a", 120)]
    assert driven.tick(125 * SECOND) == []
    assert driven.rows["out"][-1] == {"k": "a", "at": 120, "domain": "processing", "ended": False, "fired": 2}
    assert driven.times["out"] == []


def test_timers_that_are_due_fire_before_the_next_rows(step):
    driven = step(Alarms())
    driven.process({"k": ["a"], "after": [[10]]})
    driven.clock = 11 * SECOND
    assert driven.process({"k": ["a"], "after": [[]]})[-1]["fired"] == 1


def test_timer_that_was_cancelled_does_not_fire_and_one_set_twice_fires_once(step):
    driven = step(Alarms())
    driven.process({"k": ["a", "b"], "after": [[10, 20, -10], [20, 20, -30]]})
    assert alarms(driven.tick(60 * SECOND)) == [("a", 20), ("b", 20)]


def test_rows_of_a_timer_have_the_event_time_of_the_call_that_set_it_and_are_not_late(step):
    driven = step(Alarms())
    driven.process({"k": ["a", "b"], "after": [[10], [20]]}, [7 * SECOND, 9 * SECOND])
    driven.tick(10 * SECOND)
    driven.advance(30 * SECOND)
    driven.tick(20 * SECOND)
    assert driven.times["out"] == [7 * SECOND, 9 * SECOND, 7 * SECOND, 30 * SECOND]


def test_timers_of_both_kinds_at_one_time_are_two(step):
    driven = step(Alarms())
    driven.process({"k": ["a"], "after": [[10]], "at": [10]}, [1])
    assert [row["domain"] for row in driven.advance(10 * SECOND)] == ["event"]
    assert [row["domain"] for row in driven.tick(10 * SECOND)] == ["processing"]


def test_all_timers_fire_when_a_stream_with_event_time_ends(step):
    driven = step(Alarms())
    driven.process({"k": ["a"], "after": [[10]], "at": [20]}, [1])
    assert {(row["domain"], row["ended"]) for row in driven.advance(MAX_TIME)} == {("event", True), ("processing", True)}
    assert driven.finish() == []
    assert driven.times["out"] == [1, 20 * SECOND, 1]


def test_all_timers_fire_when_a_stream_without_event_time_ends_and_not_before(step):
    driven = step(Alarms())
    assert driven.advance(MAX_TIME) == [], "the watermark of a source without event time may be the last one from the beginning"
    driven.process({"k": ["a"], "after": [[10]]})
    assert [row["ended"] for row in driven.finish()] == [True]


class Again(ef.KeyedFunction):
    def on_row(self, key, row, context):
        context.timer_after("1s")

    def on_timer(self, key, time, context):
        context.timer_after("1s")


@pytest.mark.slow
def test_timers_that_set_one_another_for_ever_end_with_the_stream_in_an_error(drive):
    driven = drive(Process(("k",), Again()))
    driven.process({"k": ["a"]})
    driven.tick(1_000 * SECOND)
    with pytest.raises(RecordError, match=r"(?s)operator `step`: more than 100,000 timers of one key .*context.ended is true.*key: 'a'"):
        driven.finish()


def test_timers_go_with_their_key_to_another_worker_and_fire_there_alone(step):
    old, new = step(Alarms()), step(Alarms(), index=1)
    old.process({"k": ["a", "b"], "after": [[10, 20], [15]]})
    old.tick(12 * SECOND)
    departing = old.operator.state.depart(Move(0, 1, groups=tuple(range(16))))
    chunks = [departing.next_chunk(1)]
    assert old.tick(60 * SECOND) == []
    while chunks[-1] is not None:
        new.operator.state.install(chunks[-1])
        chunks.append(departing.next_chunk(1))
    assert old.finish() == []
    assert alarms(new.tick(20 * SECOND)) == [("b", 15), ("a", 20)]


def test_snapshot_restores_timers_which_fire_at_once_if_they_were_due_meanwhile(step, drive):
    driven = step(Alarms())
    driven.process({"k": ["a", "b"], "after": [[10], [90]]})
    chunks = driven.operator.state.snapshot()
    driven.tick(30 * SECOND)
    restored = drive(Process(("k",), Alarms()))
    for chunk in chunks:
        restored.operator.state.install(chunk)
    assert alarms(restored.tick(40 * SECOND)) == [("a", 10)]
    assert alarms(restored.tick(90 * SECOND)) == [("b", 90)]


def test_records_without_such_timers_are_as_older_versions_wrote_them():
    record = KeyRecord({"fired": 1}, {}, {5})
    assert list(pack_records([record])) == list(pack_values([[{"fired": 1}, {}, [5]]]))
    timed = KeyRecord({}, {}, set(), {7: None, 8: 9})
    assert unpack_records(list(pack_records([record, timed]))) == [record, timed]


class Wrong(ef.KeyedFunction):
    def on_row(self, key, row, context):
        if row["v"] == "domain":
            context.cancel(context.now, time_domain="wall")
        elif row["v"] == "number":
            context.cancel(7, time_domain="processing")
        else:
            context.timer_after(row["v"])


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("0s", r"timer_after\('0s'\): the delay must be longer than zero"),
        ("soon", "timer_after: delay 'soon' is not a duration: write"),
        ("3000000d", r"timer_after\('3000000d'\): the timer would fire after the year 9999"),
        ("domain", r"cancel\(time_domain='wall'\): expected 'event' or 'processing'"),
        ("number", "a timer takes a datetime, .*; got 7"),
    ],
)
def test_mistake_is_named_with_operator_key_and_row(drive, what, problem):
    with pytest.raises(RecordError, match=rf"(?s)operator `step`: .*{problem}.*key: 'a'.*record: .*'v': '{what}'"):
        drive(Process(("k",), Wrong())).process({"k": ["a"], "v": [what]})
