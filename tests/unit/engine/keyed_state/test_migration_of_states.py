"""States move from workers that run older code to those that run newer code: each is migrated once, whatever way it takes."""

from __future__ import annotations

from collections import Counter
from itertools import count, product
from typing import Any

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.errors import RecordError
from evenflow.engine.keyed_state.kinds.objects import STATE
from evenflow.engine.operators.processing.process import Process
from evenflow.engine.operators.processing.stateful_map import StatefulMap
from evenflow.engine.protocol.routing import Move
from evenflow.state.backends.settings import StateSettings

PLACES = ("memory", "lmdb", "server")
JOBS = count()
NAMES = [f"user-{n}" for n in range(20)]
ROWS = {"k": NAMES * 3, "v": list(range(60))}
ALL = tuple(range(16))
MIGRATED: Counter[Any] = Counter()
"""The number of times that each state was migrated, by the state."""


def total(state, row):
    state = (state or 0) + row["v"]
    return state, {"k": row["k"], "total": state}


def total_in_cents(state, row):
    state = {"cents": (state or {"cents": 0})["cents"] + 100 * row["v"]}
    return state, {"k": row["k"], "total": state["cents"] / 100}


def in_cents(version, state):
    assert version == 1
    MIGRATED[state] += 1
    return None if state == 60 else {"cents": 100 * state}


class Totals(ef.KeyedFunction):
    total = ef.value_state(0)
    seen = ef.list_state()

    def on_row(self, key, row, context):
        self.total += row["v"]
        self.seen.append(row["v"])
        context.timer_after("1s")
        yield {"k": key, "total": self.total}

    def on_timer(self, key, time, context):
        yield {"k": key, "total": self.total}


class InCents(ef.KeyedFunction):
    state_version = 2
    cents = ef.value_state(0)
    values = ef.list_state(renamed_from="seen")

    def on_row(self, key, row, context):
        self.cents += 100 * row["v"]
        yield {"k": key, "total": self.cents / 100}

    def on_timer(self, key, time, context):
        yield {"k": key, "total": self.cents / 100, "values": list(self.values)}

    def migrate_state(self, version, state):
        cents = in_cents(version, state["total"])
        return {} if cents is None else {**cents, "values": state["values"]}


OPERATORS = {
    "stateful_map": (StatefulMap(("k",), total), StatefulMap(("k",), total_in_cents, version=2, migrate=in_cents)),
    "process": (Process(("k",), Totals()), Process(("k",), InCents())),
}
TOTALS = {name: 3 * n + 60 for n, name in enumerate(NAMES)}
AFTER = {name: sum_ if sum_ > 60 else 0 for name, sum_ in TOTALS.items()}
"""The totals that the newer code sees: it forgets that of user-0."""


@pytest.fixture
def step(drive, request):
    """Return a factory of driven operators; those of one test share the name of a job."""
    opened, job = [], f"versions-{next(JOBS)}"
    MIGRATED.clear()

    def make(operator, place, index=0):
        backend = request.getfixturevalue("state_server") if place == "server" else place
        driven = drive(operator, StateSettings(backend, job=job), index)
        opened.append(driven.operator)
        return driven

    yield make
    for operator in opened:
        operator.close()


def totals_next(driven):
    return {row["k"]: row["total"] for row in driven.process({"k": NAMES, "v": [0] * 20})}


def once():
    return set(MIGRATED) == set(TOTALS.values()) and set(MIGRATED.values()) == {1}


def given(transfer, keys=7):
    while (chunk := transfer.next_chunk(keys)) is not None:
        yield chunk


@pytest.mark.parametrize(("old", "new"), list(product(PLACES, PLACES)))
@pytest.mark.parametrize("kind", OPERATORS)
def test_snapshot_of_older_code_is_migrated_once_into_any_backend(step, kind, old, new):
    before, after = OPERATORS[kind]
    first, second, third = step(before, old), step(after, new, 1), step(after, new, 2)
    first.process(ROWS)
    for chunk in first.operator.state.snapshot():
        second.operator.state.restore(chunk, "step")
    assert once()
    for chunk in second.operator.state.snapshot():
        third.operator.state.restore(chunk, "step")
    assert totals_next(second) == totals_next(third) == AFTER
    assert once()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", OPERATORS)
def test_keys_that_move_to_newer_code_are_migrated_once_and_move_on_as_they_are(step, kind, place):
    before, after = OPERATORS[kind]
    old, new, other = step(before, place), step(after, place, 1), step(after, place, 2)
    old.process(ROWS)
    for chunk in given(old.operator.state.depart(Move(0, 1, groups=ALL))):
        new.operator.state.install(chunk)
    assert once()
    for chunk in given(new.operator.state.depart(Move(1, 2, groups=ALL))):
        other.operator.state.install(chunk)
    assert totals_next(other) == AFTER
    assert once()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", OPERATORS)
def test_keys_that_are_asked_for_one_by_one_are_migrated_once(step, kind, place):
    """Process a row of each key before the rest of the state arrives: in a server it is there at once, as the older code wrote it."""
    before, after = OPERATORS[kind]
    old, new = step(before, place), step(after, place, 1)
    old.process(ROWS)
    departing = old.operator.state.depart(Move(0, 1, groups=ALL))
    for name in NAMES[::2]:
        for chunk in departing.fetch([pa.array([name])]):
            new.operator.state.install(chunk)
        assert new.process({"k": [name], "v": [1]})[0]["total"] == AFTER[name] + 1
    for chunk in given(departing):
        new.operator.state.install(chunk)
    assert totals_next(new) == {name: value + (n % 2 == 0) for n, (name, value) in enumerate(AFTER.items())}
    assert once()


@pytest.mark.parametrize("place", PLACES)
def test_timers_and_lists_of_renamed_states_arrive_with_their_keys(step, place):
    before, after = OPERATORS["process"]
    old, new = step(before, place), step(after, place, 1)
    old.process(ROWS)
    for chunk in given(old.operator.state.depart(Move(0, 1, groups=ALL))):
        new.operator.state.install(chunk)
    fired = new.tick(2_000_000)
    values = {name: [n, n + 20, n + 40] if n else [] for n, name in enumerate(NAMES)}
    assert {row["k"]: (row["total"], row["values"]) for row in fired} == {name: (AFTER[name], values[name]) for name in NAMES}


class Renamed(ef.KeyedFunction):
    sum_ = ef.value_state(0, renamed_from="total")
    seen = ef.list_state()

    def on_row(self, key, row, context):
        yield {"k": key, "total": self.sum_ + row["v"]}


class RenamedFor(ef.KeyedFunction):
    """The same function later, when nothing is left of the former name."""

    sum_ = ef.value_state(0)
    on_row = Renamed.on_row


@pytest.mark.parametrize("place", PLACES)
def test_renamed_state_keeps_its_new_name_without_a_new_version(step, place):
    old, new, later = (
        step(Process(("k",), Totals()), place),
        step(Process(("k",), Renamed()), place, 1),
        step(Process(("k",), RenamedFor()), place, 2),
    )
    old.process(ROWS)
    for chunk in given(old.operator.state.depart(Move(0, 1, groups=ALL))):
        new.operator.state.install(chunk)
    for chunk in new.operator.state.snapshot():
        later.operator.state.install(chunk)
    assert totals_next(new) == totals_next(later) == TOTALS


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", OPERATORS)
def test_state_of_newer_code_is_refused_with_both_versions(step, kind, place):
    before, after = OPERATORS[kind]
    new, old = step(after, place), step(before, place, 1)
    new.process(ROWS)
    problem = r"(?s)operator `step`: the state was written by version 2 of `\w+`, this code has version 1.*key: 'user-"

    def arrive():
        for chunk in given(new.operator.state.depart(Move(0, 1, groups=ALL))):
            old.operator.state.install(chunk)
        totals_next(old)  # in a server it is seen when it is read

    with pytest.raises(RecordError, match=problem):
        arrive()


@pytest.mark.parametrize("place", PLACES)
def test_values_with_a_time_to_live_expire_as_the_older_code_wrote_them(step, place):
    class Before(ef.KeyedFunction):
        last = ef.value_state(ttl="1s")

        def on_row(self, key, row, context):
            self.last = row["v"]
            return ()

    class After(ef.KeyedFunction):
        state_version = 2
        last = ef.value_state(ttl="1s")
        twice = ef.value_state(ttl="1s")

        def on_row(self, key, row, context):
            yield {"k": key, "last": self.last, "twice": self.twice}

        def migrate_state(self, version, state):
            return {**state, "twice": 2 * state["last"]}

    old, new = step(Process(("k",), Before()), place), step(Process(("k",), After()), place, 1)
    old.process({"k": ["a", "b"], "v": [1, 2]}, [0, 600_000])
    for chunk in given(old.operator.state.depart(Move(0, 1, groups=ALL))):
        new.operator.state.install(chunk)
    rows = new.process({"k": ["a", "b"], "v": [0, 0]}, [1_100_000, 1_100_000])
    assert rows == [{"k": "a", "last": None, "twice": None}, {"k": "b", "last": 2, "twice": 4}]


def test_state_of_version_1_is_saved_as_before_there_were_versions(step):
    old = step(OPERATORS["stateful_map"][0], "memory")
    old.process({"k": ["a"], "v": [5]})
    (chunk,) = old.operator.state.snapshot()
    assert chunk.rows.column(STATE).to_pylist() == [b"\x05"]
