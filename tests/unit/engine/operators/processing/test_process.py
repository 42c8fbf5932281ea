"""A function with states and timers per key, driven by hand, over every backend."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count

import pytest

import evenflow as ef
from evenflow.engine.errors import FlowError, RecordError
from evenflow.engine.keyed_state.kinds.timers import MOST_VOID
from evenflow.engine.operators.processing.process import Process
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.protocol.routing import Move
from evenflow.engine.time.datetimes import as_datetime
from evenflow.state.backends.settings import StateSettings

SECOND = 1_000_000
JOBS = count()


@pytest.fixture(params=["memory", "lmdb", "server"])
def place(request):
    backend = request.getfixturevalue("state_server") if request.param == "server" else request.param
    return StateSettings(backend, job=f"process-{next(JOBS)}")


@pytest.fixture
def step(drive, place):
    """Return a factory of driven operators, which are closed at the end."""
    opened = []

    def make(function, index=0):
        driven = drive(Process(("k",), function), place, index)
        opened.append(driven.operator)
        return driven

    yield make
    for operator in opened:
        operator.close()


class Everything(ef.KeyedFunction):
    """A function that yields its states, then does what the row tells it to."""

    number = ef.value_state(default=7)
    items = ef.list_state()
    names = ef.map_state()

    def on_row(self, key, row, context):
        yield {"k": key, "number": self.number, "items": list(self.items), "names": " ".join(self.names)}
        if row["v"] == 0:
            del self.number
            self.items.clear()
            self.names.clear()
        else:
            self.number = row["v"]
            self.items.append(row["v"])
            self.names[str(row["v"])] = row["v"]


def test_states_are_of_one_key_and_stay_from_batch_to_batch(step):
    driven = step(Everything())
    nothing = {"number": 7, "items": [], "names": ""}
    assert driven.process({"k": ["a", "b", "a"], "v": [1, 2, 3]}) == [
        {"k": "a", **nothing},
        {"k": "b", **nothing},
        {"k": "a", "number": 1, "items": [1], "names": "1"},
    ]
    assert driven.process({"k": ["b", "a"], "v": [0, 0]}) == [
        {"k": "b", "number": 2, "items": [2], "names": "2"},
        {"k": "a", "number": 3, "items": [1, 3], "names": "1 3"},
    ]
    assert driven.operator.state.backend.count() == 0, "a key without states is forgotten"
    assert driven.process({"k": ["a"], "v": [1]}) == [{"k": "a", **nothing}]


class Lists(ef.KeyedFunction):
    items = ef.list_state()

    def on_row(self, key, row, context):
        items = self.items
        items.extend([3, 1, 2])
        items[0], items[-1] = 30, 20
        del items[1]
        items.insert(0, 5)
        yield {"items": list(items), "len": len(items), "has": 30 in items, "slice": items[1:], "same": items == [5, 30, 20]}
        self.items = (9, 8)
        yield {"items": list(self.items), "len": 2, "has": False, "slice": items[1:], "same": self.items == items}
        while items:
            items.pop()


def test_list_state_does_what_a_list_does(step):
    driven = step(Lists())
    assert driven.process({"k": ["a"], "v": [1]}) == [
        {"items": [5, 30, 20], "len": 3, "has": True, "slice": [30, 20], "same": True},
        {"items": [9, 8], "len": 2, "has": False, "slice": [8], "same": True},
    ]
    assert driven.operator.state.backend.count() == 0


class Maps(ef.KeyedFunction):
    names = ef.map_state()

    def on_row(self, key, row, context):
        self.names["a"] = 1
        self.names.update(b=2)
        self.names.setdefault("c", 3)
        yield {"all": dict(self.names) == {"a": 1, "b": 2, "c": 3}, "get": self.names.get("x", 0), "pop": self.names.pop("b")}
        self.names = {"z": 26}
        yield {"all": list(self.names.items()) == [("z", 26)], "get": len(self.names), "pop": self.names.pop("z")}


def test_map_state_does_what_a_dict_does(step):
    driven = step(Maps())
    rows = driven.process({"k": ["a"], "v": [1]})
    assert rows == [{"all": True, "get": 0, "pop": 2}, {"all": True, "get": 1, "pop": 26}]
    assert driven.operator.state.backend.count() == 0


class Defaults(ef.KeyedFunction):
    seen = ef.value_state(default=[])

    def on_row(self, key, row, context):
        seen = self.seen
        seen.append(row["v"])
        yield {"n": len(seen)}
        if row["v"]:
            self.seen = seen


def test_mutable_default_is_not_shared_between_keys(step):
    rows = step(Defaults()).process({"k": ["a", "b", "b", "a"], "v": [0, 1, 2, 3]})
    assert [row["n"] for row in rows] == [1, 1, 2, 1]


class InPlace(ef.KeyedFunction):
    totals = ef.value_state()

    def on_row(self, key, row, context):
        if self.totals is None:
            self.totals = {"n": 0}
        self.totals["n"] += row["v"]
        yield {"n": self.totals["n"]}


def test_value_that_is_changed_in_place_is_kept(step):
    driven = step(InPlace())
    driven.process({"k": ["a"], "v": [1]})
    assert driven.process({"k": ["a"], "v": [2]}) == [{"n": 3}]


class Alarms(ef.KeyedFunction):
    """A function that sets the timers that a row lists, in seconds, and cancels those below zero."""

    fired = ef.value_state(default=0)

    def on_row(self, key, row, context):
        for at in row["at"]:
            if at < 0:
                context.cancel(as_datetime(-at * SECOND))
            else:
                context.timer(as_datetime(at * SECOND))

    def on_timer(self, key, time, context):
        self.fired += 1
        yield {"k": key, "time": int(time.timestamp()), "nth": self.fired, "ended": context.ended}


def alarms(rows):
    return [(row["k"], row["time"]) for row in rows]


def test_timers_fire_by_time_and_then_in_the_order_of_their_setting(step):
    driven = step(Alarms())
    assert driven.process({"k": ["b", "a", "c"], "at": [[30, 10], [20, 10], [10]]}, [1, 2, 3]) == []
    assert alarms(driven.advance(9 * SECOND)) == []
    assert alarms(driven.advance(20 * SECOND)) == [("b", 10), ("a", 10), ("c", 10), ("a", 20)]
    assert driven.times["out"] == [10 * SECOND] * 3 + [20 * SECOND]
    assert alarms(driven.advance(MAX_TIME)) == [("b", 30)]
    assert driven.rows["out"][-1] == {"k": "b", "time": 30, "nth": 2, "ended": True}


def test_timer_that_was_cancelled_does_not_fire_and_one_set_twice_fires_once(step):
    driven = step(Alarms())
    driven.process({"k": ["a", "b"], "at": [[10, 20, -10], [20, 20, -30]]}, [1, 1])
    driven.process({"k": ["a"], "at": [[30, -30, 30]]}, [2])
    assert alarms(driven.advance(MAX_TIME)) == [("a", 20), ("b", 20), ("a", 30)]


def test_timer_behind_the_watermark_fires_when_it_rises_again_and_its_rows_are_not_late(step):
    driven = step(Alarms())
    driven.advance(50 * SECOND)
    driven.process({"k": ["a"], "at": [[10]]}, [50 * SECOND])
    assert alarms(driven.advance(51 * SECOND)) == [("a", 10)]
    assert driven.times["out"] == [50 * SECOND]


def test_more_timers_than_one_look_at_the_backend_takes_fire_in_order(step):
    driven = step(Alarms())
    keys = [f"{i:05d}" for i in range(3_000)]
    driven.process({"k": keys, "at": [[i % 7 + 1, 9] for i in range(3_000)]}, [0] * 3_000)
    rows = alarms(driven.advance(MAX_TIME))
    assert rows == sorted(rows, key=lambda row: (row[1], row[0]))
    assert len(rows) == 6_000


class Chain(ef.KeyedFunction):
    def on_row(self, key, row, context):
        context.timer(datetime(1970, 1, 1, 0, 0, 10) + timedelta(seconds=row["v"]))

    def on_timer(self, key, time, context):
        yield {"k": key, "at": int(time.timestamp())}
        if time < as_datetime(14 * SECOND):
            context.timer(time + timedelta(seconds=1))


def test_timer_that_a_timer_sets_fires_in_its_turn_among_the_others(step):
    driven = step(Chain())
    driven.process({"k": ["a", "b"], "v": [1, 3]}, [1, 1])
    rows = driven.advance(60 * SECOND)
    assert [(row["k"], row["at"]) for row in rows] == [("a", 11), ("a", 12), ("b", 13), ("a", 13), ("b", 14), ("a", 14)]


class Forever(ef.KeyedFunction):
    def on_row(self, key, row, context):
        context.timer(context.time + timedelta(seconds=1))

    def on_timer(self, key, time, context):
        context.timer(time + timedelta(seconds=1))


def test_timers_that_set_one_another_for_ever_end_with_the_stream_in_an_error(drive):
    driven = drive(Process(("k",), Forever()))
    driven.process({"k": ["a"]}, [0])
    assert driven.advance(1_000 * SECOND) == []
    with pytest.raises(RecordError, match=r"(?s)operator `step`: more than 100,000 timers of one key .*context.ended is true.*key: 'a'"):
        driven.advance(MAX_TIME)


class Expiring(ef.KeyedFunction):
    number = ef.value_state(default=0, ttl="10s")
    items = ef.list_state(ttl="20s")
    names = ef.map_state(ttl=30)

    def on_row(self, key, row, context):
        yield {"v": row["v"], "number": self.number, "items": len(self.items), "names": len(self.names)}
        if row["v"]:
            self.number += 1
            self.items.append(1)
            self.names[str(len(self.names))] = 1


def test_states_are_gone_when_the_event_time_since_their_last_write_has_passed_their_ttl(step):
    driven = step(Expiring())
    times = [0, 9, 19, 28, 50, 79, 80]
    rows = driven.process({"k": ["a"] * 7, "v": [1, 1, 1, 0, 1, 0, 0]}, [t * SECOND for t in times])
    assert [(row["number"], row["items"], row["names"]) for row in rows] == [
        (0, 0, 0), (1, 1, 1), (0, 2, 2), (1, 3, 3), (0, 0, 0), (0, 0, 1), (0, 0, 0),
    ]  # fmt: skip


def test_expired_states_take_no_room_once_the_watermark_has_passed(step):
    driven = step(Expiring())
    driven.process({"k": ["a", "b"], "v": [1, 1]}, [0, 5 * SECOND])
    driven.advance(29 * SECOND)
    assert driven.operator.state.backend.count() == 2
    driven.advance(30 * SECOND)
    assert driven.operator.state.backend.count() == 1
    driven.process({"k": ["b"], "v": [1]}, [34 * SECOND])
    driven.advance(40 * SECOND)
    assert driven.operator.state.backend.count() == 1, "it was written again"
    driven.advance(64 * SECOND)
    assert driven.operator.state.backend.count() == 0


def test_timers_and_states_go_with_their_key_to_another_worker(step):
    old, new = step(Alarms()), step(Alarms(), index=1)
    old.process({"k": ["a", "b", "c"], "at": [[10, 20], [15], []]}, [1, 1, 1])
    old.advance(12 * SECOND)
    departing = old.operator.state.depart(Move(0, 1, groups=tuple(range(16))))
    keys = 0
    while (chunk := departing.next_chunk(1)) is not None:
        new.operator.state.install(chunk)
        keys += chunk.num_rows
    assert keys == 2, "`c` has neither states nor timers"
    assert old.advance(MAX_TIME) == []
    assert [(row["k"], row["time"], row["nth"]) for row in new.advance(MAX_TIME)] == [("b", 15, 1), ("a", 20, 2)]


@pytest.mark.parametrize(("function", "rows"), [(Alarms, {"at": [[20], [20]]}), (Expiring, {"v": [1, 1]})])
def test_event_time_that_goes_on_does_not_touch_keys_that_are_still_being_given_away(step, function, rows):
    old, new = step(function()), step(function(), index=1)
    old.process({"k": ["a", "b"], **rows}, [1, 1])
    departing = old.operator.state.depart(Move(0, 1, groups=tuple(range(16))))
    chunks = [departing.next_chunk(1)]
    assert old.advance(60 * SECOND) == []
    while chunks[-1] is not None:
        new.operator.state.install(chunks[-1])
        chunks.append(departing.next_chunk(1))
    assert new.operator.state.backend.count() == 2
    if function is Alarms:
        assert sorted(alarms(new.advance(60 * SECOND))) == [("a", 20), ("b", 20)]
    else:
        found = new.process({"k": ["a", "b"], "v": [0, 0]}, [2 * SECOND] * 2)
        assert [(row["number"], row["names"]) for row in found] == [(1, 1), (1, 1)]


def test_snapshot_holds_states_and_timers_as_they_were_and_restores_them(step, drive):
    driven = step(Alarms())
    driven.process({"k": ["a", "b"], "at": [[10, 20], [20]]}, [1, 1])
    driven.advance(10 * SECOND)
    chunks = driven.operator.state.snapshot()
    driven.process({"k": ["b", "c"], "at": [[-20], [20]]}, [11 * SECOND] * 2)
    driven.advance(30 * SECOND)
    restored = drive(Process(("k",), Alarms()))
    restored.advance(10 * SECOND)
    for chunk in chunks:
        restored.operator.state.install(chunk)
    assert [(row["k"], row["nth"]) for row in sorted(restored.advance(MAX_TIME), key=lambda row: row["k"])] == [("a", 2), ("b", 1)]


class Failing(ef.KeyedFunction):
    state = ef.value_state()
    short = ef.value_state(ttl=1)
    items = ef.list_state()
    names = ef.map_state()

    def on_row(self, key, row, context):
        what = row["v"]
        if what == "return":
            return {"k": key}
        if what == "ttl":
            self.short = 1
        elif what == "timer":
            context.timer(datetime(1970, 1, 1))
        elif what == "time":
            context.timer(60_000_000)
        elif what == "list":
            self.items = "abc"
        elif what == "map":
            self.names = [1]
        elif what == "state":
            self.state = bytearray(2)
        return None


@pytest.mark.parametrize(
    ("what", "times", "problem"),
    [
        ("return", None, r"on_row returned \{'k': 'a'\}: yield rows, or return a list of them"),
        ("ttl", None, "the state `short` has a ttl, which needs event time: give the source event_time="),
        ("timer", None, "a timer needs event time: give the source event_time="),
        ("time", [1], r'a timer takes a datetime, or a duration from context.time on, such as "10m"; got 60000000'),
        ("list", [1], "the state `items` is a list, got 'abc'"),
        ("map", [1], r"the state `names` is a map, got \[1\]"),
    ],
)
def test_mistake_is_named_with_operator_key_and_row(drive, what, times, problem):
    with pytest.raises(RecordError, match=rf"(?s)operator `step`: .*{problem}.*key: 'a'.*record: .*'v': '{what}'"):
        drive(Process(("k",), Failing())).process({"k": ["a"], "v": [what]}, times)


def test_timer_without_on_timer_is_named(drive):
    driven = drive(Process(("k",), Failing()))
    driven.process({"k": ["a"], "v": ["timer"]}, [1])
    with pytest.raises(RecordError, match=r"(?s)Failing sets timers: it must define on_timer.*key: 'a'.*the timer at 1970-01-01T00:00:00"):
        driven.advance(MAX_TIME)


def process_and_save(driven):
    driven.process({"k": ["a"], "v": ["state"]}, [1])
    next(driven.operator.state.snapshot())


def test_state_that_can_not_be_packed_names_its_key(step):
    driven = step(Failing())
    with pytest.raises(RecordError, match=r"(?s)operator `step`: Failing: the state can't be saved: `self.state` is a bytearray.*key: "):
        process_and_save(driven)


def test_class_in_place_of_an_instance_is_refused():
    flow = ef.Dataflow("f")
    with pytest.raises(FlowError, match=r"expected an instance of a class derived from ef\.KeyedFunction"):
        flow.read(ef.from_items([1])).key_by("item").process(Alarms)


def test_ttl_must_be_a_duration_longer_than_zero():
    with pytest.raises(FlowError, match="ttl must be longer than zero"):
        ef.value_state(ttl=0)
    with pytest.raises(FlowError, match="ttl 'soon' is not a duration"):
        ef.list_state(ttl="soon")


class Reminder(ef.KeyedFunction):
    """A function that postpones its timer with every row, and forgets its key on demand."""

    at = ef.value_state(ttl="1d")

    def on_row(self, key, row, context):
        if self.at is not None:
            context.cancel(self.at)
        if row["v"]:
            self.at = context.time + timedelta(hours=1)
            context.timer(self.at)
        else:
            del self.at

    def on_timer(self, key, time, context):
        yield {"k": key, "at": int(time.timestamp())}


def test_timers_that_were_put_off_and_keys_that_were_forgotten_do_not_pile_up(step):
    driven = step(Reminder())
    for second in range(100):
        keys = [*range(30), *range(1000 + 30 * second, 1030 + 30 * second)]
        rows = {"k": [*keys, *keys[30:]], "v": [1] * 60 + [0] * 30}
        driven.process(rows, times=[second * SECOND] * 90)
        driven.advance(second * SECOND)
    assert len(driven.operator.state.timers) <= MOST_VOID
    assert len(driven.operator.state.expiries) <= MOST_VOID
    assert driven.advance(MAX_TIME) == [{"k": key, "at": 3699} for key in range(30)]
