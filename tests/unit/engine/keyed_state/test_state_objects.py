"""Python objects as states move from any backend into any other: with a snapshot, and with keys that move."""

from __future__ import annotations

import datetime as dt
from itertools import count, product

import pyarrow as pa
import pytest

from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.keys.encoding import key_hashes
from evenflow.engine.operators.processing.stateful_map import StatefulMap
from evenflow.engine.protocol.routing import Move
from evenflow.state.backends.settings import StateSettings

PLACES = ("memory", "lmdb", "server")
JOBS = count()
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(20)]
ROWS = {"day": DAYS * 3, "name": (["ann", None] * 10) * 3, "v": list(range(60))}
ALL = tuple(range(16))


def collect(state, row):
    seen = (*(state or ()), row["v"])
    return seen, {"day": row["day"], "name": row["name"], "seen": list(seen)}


@pytest.fixture
def step(drive, request):
    """Return a factory of driven operators; those of one test share the name of a job."""
    opened, job = [], f"states-{next(JOBS)}"

    def make(place, index=0):
        backend = request.getfixturevalue("state_server") if place == "server" else place
        driven = drive(StatefulMap(("day", "name"), collect), StateSettings(backend, job=job), index)
        opened.append(driven.operator)
        return driven

    yield make
    for operator in opened:
        operator.close()


def seen_next(driven):
    return {row["day"]: row["seen"] for row in driven.process({"day": DAYS, "name": ["ann", None] * 10, "v": [-1] * 20})}


EXPECTED = {day: [i, i + 20, i + 40, -1] for i, day in enumerate(DAYS)}


@pytest.mark.parametrize(("old", "new"), list(product(PLACES, PLACES)))
def test_snapshot_of_any_backend_is_installed_in_any_other(step, old, new):
    first, second = step(old), step(new, index=1)
    first.process(ROWS)
    for chunk in first.operator.state.snapshot():
        second.operator.state.install(chunk)
    assert seen_next(second) == EXPECTED
    assert seen_next(first) == EXPECTED, "the snapshot has taken nothing away"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("chunk", [1, 7, 1_000])
def test_keys_that_move_take_their_states_along(step, place, chunk):
    old, new = step(place), step(place, index=1)
    old.process(ROWS)
    departing = old.operator.state.depart(Move(0, 1, groups=ALL))
    while (state := departing.next_chunk(chunk)) is not None:
        new.operator.state.install(state)
    assert seen_next(new) == EXPECTED
    assert set(map(tuple, seen_next(old).values())) == {(-1,)}


@pytest.mark.parametrize("place", PLACES)
def test_keys_with_a_route_of_their_own_go_or_stay_alone(step, place):
    old, new = step(place), step(place, index=1)
    old.process(ROWS)
    columns = [pa.array(DAYS), pa.array(["ann", None] * 10)]
    hashes = key_hashes(columns, "step").tolist()
    for move in (Move(0, 1, keys=(hashes[3],)), Move(0, 1, groups=ALL, staying=(hashes[5],))):
        departing = old.operator.state.depart(move)
        while (state := departing.next_chunk(4)) is not None:
            new.operator.state.install(state)
    stayed, went = seen_next(old), seen_next(new)
    assert {day: seen for day, seen in stayed.items() if len(seen) > 1} == {DAYS[5]: EXPECTED[DAYS[5]]}
    assert went == {**EXPECTED, DAYS[5]: [-1]}


@pytest.mark.parametrize("place", PLACES)
def test_keys_that_are_asked_for_one_by_one_are_there_for_the_new_owner(step, place):
    old, new = step(place), step(place, index=1)
    old.process(ROWS)
    departing = old.operator.state.depart(Move(0, 1, groups=ALL))
    for day, name in zip(DAYS, ["ann", None] * 10, strict=True):
        for state in departing.fetch([pa.array([day]), pa.array([name], pa.string())]):
            new.operator.state.install(state)
    assert seen_next(new) == EXPECTED


@pytest.mark.parametrize("place", PLACES)
def test_states_that_change_while_a_snapshot_is_taken_are_in_it_as_they_were(step, place):
    driven, other = step(place), step("memory")
    driven.process(ROWS)
    chunks = driven.operator.state.snapshot()
    seen_next(driven)
    driven.process({"day": [dt.date(1999, 1, 1)], "name": ["new"], "v": [1]})
    for chunk in chunks:
        other.operator.state.install(chunk)
    assert len(other.operator.state.backend.objects) == 20
    assert seen_next(other) == EXPECTED


@pytest.mark.parametrize("place", PLACES)
def test_keys_that_come_as_a_dictionary_and_as_plain_text_are_the_same(step, place):
    driven = step(place)
    days = pa.array(DAYS[:2])
    for names in (pa.array(["ann", "bob"]).dictionary_encode(), pa.array(["ann", "bob"])):
        rows = driven.process_batch(Batch(pa.record_batch({"day": days, "name": names, "v": [1, 1]})))
    assert [row["seen"] for row in rows] == [[1, 1], [1, 1]]


@pytest.mark.parametrize("place", ["memory", "lmdb", "server"])
def test_state_that_can_not_be_saved_names_its_key_in_every_backend(drive_in, place):
    step = drive_in(place)(StatefulMap(("k",), lambda state, row: ([len] if row["k"] == "b" else 1, None)))

    def process_and_save():
        step.process({"k": ["a", "b"]})
        return list(step.operator.state.snapshot())

    with pytest.raises(RecordError, match=r"(?s)operator `step`: .*the state can't be saved: `state\[0\]` is a builtin_function.*key: 'b'"):
        process_and_save()
