"""Columns of state move from any backend into any other: with a snapshot, and with keys that move; and they are read in pieces."""

from __future__ import annotations

import datetime as dt
from itertools import count, product

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.context import Context
from evenflow.engine.keys.encoding import key_hashes
from evenflow.engine.keys.load import KeyLoad
from evenflow.engine.operators.aggregation.aggregate_rows import AggregateRows
from evenflow.engine.operators.aggregation.aggregate_running import AggregateRunning
from evenflow.engine.operators.aggregation.aggregate_sessions import AggregateSessions
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindows
from evenflow.engine.operators.aggregation.process_windows import ROWS, ProcessWindows
from evenflow.engine.operators.processing.deduplicate import Deduplicate
from evenflow.engine.operators.processing.stateful_map_columns import StatefulMapColumns
from evenflow.engine.protocol.routing import Move
from evenflow.engine.snapshots.chain import resolved
from evenflow.engine.time.row_windows import RowWindows
from evenflow.engine.time.sessions import SessionWindows
from evenflow.engine.time.windows import Windows
from evenflow.state.backends.settings import StateSettings

PLACES = ("memory", "lmdb", "server")
JOBS = count()
GROUPS = 16
ALL = tuple(range(GROUPS))
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(20)]
KEYS = ("day", "name")
NAMES = ["ann", None] * 10
FIRST = str(DAYS[:1])[1:-1]
STATE = {"n": np.dtype("int64"), "total": np.dtype("float64")}
AGGREGATES = {"n": ef.count(), "total": ef.sum("v"), "high": ef.max("v"), "text": ef.min("t"), "distinct": ef.approx_distinct("t")}


def running_total(state, rows):
    n, total = rows.running_count(state["n"]), rows.running_sum("v", state["total"])
    return {"n": rows.last(n), "total": rows.last(total)}, {"day": rows["day"], "name": rows["name"], "n": n, "total": total}


def rows_told(key, window, rows):
    yield {"day": key[0], "name": key[1], "start": window.start, "rows": " ".join(f"{row['v']} {row['t']}" for row in rows)}


OPERATORS = {
    "final": lambda: AggregateRunning(KEYS, AGGREGATES, updates=False),
    "updates": lambda: AggregateRunning(KEYS, AGGREGATES, updates=True),
    "tumbling": lambda: AggregateWindows(KEYS, AGGREGATES, Windows(100, 100)),
    "sliding": lambda: AggregateWindows(KEYS, AGGREGATES, Windows(100, 25)),
    "sessions": lambda: AggregateSessions(KEYS, {**AGGREGATES, "all": ef.collect("v")}, SessionWindows(15)),
    "rows": lambda: AggregateRows(KEYS, {**AGGREGATES, "middle": ef.median("v")}, RowWindows(3, 2)),
    "function": lambda: ProcessWindows(AggregateWindows(KEYS, ROWS, Windows(100, 50)), rows_told),
    "function of sessions": lambda: ProcessWindows(AggregateSessions(KEYS, ROWS, SessionWindows(15)), rows_told),
    "first": lambda: Deduplicate(KEYS),
    "first again": lambda: Deduplicate(KEYS, 30),
    "columns": lambda: StatefulMapColumns(
        KEYS, running_total, {"n": np.dtype("int64"), "total": np.dtype("float64")}, ("day", "name", "v")
    ),
}


def rows_of(first: int, times: int = 1) -> Batch:
    """Return a row of each of the 20 keys, `times` times over, at event times from `first` on."""
    n = len(DAYS) * times
    columns = {"day": pa.array(DAYS * times), "name": pa.array(NAMES * times), "v": pa.array([float(first + i) for i in range(n)])}
    return Batch(pa.record_batch({**columns, "t": pa.array([f"t{first + i}" for i in range(n)])}), np.arange(first, first + n))


class Worker:
    """One instance of an operator; `out` collects what it emits."""

    def __init__(self, operator, state, index=0):
        self.out, self.batches = [], 0
        self.operator = operator.open(Context("step", index, 2, GROUPS, KeyLoad(GROUPS), state))

    def process(self, batch):
        self.operator.process(batch, self._emit)
        return self

    def end(self):
        """Return the output from now on, in no order."""
        self.out = []
        self.process(rows_of(70)).operator.advance(1_000, self._emit)
        self.operator.finish(self._emit)
        return sorted(map(str, self.out))

    def _emit(self, batch, port="out"):
        assert batch.num_rows
        assert port == "out"
        self.batches += 1
        self.out += batch.to_rows()


@pytest.fixture
def worker(request):
    """Return a factory of workers; those of one test are of one job."""
    made, job = [], f"columns-{next(JOBS)}"

    def make(operator, place, index=0):
        backend = request.getfixturevalue("state_server") if place == "server" else place
        made.append(Worker(OPERATORS[operator](), StateSettings(backend, job=job), index))
        return made[-1]

    yield make
    for each in made:
        each.operator.close()


@pytest.fixture
def expected(worker):
    return lambda operator: worker(operator, "memory").process(rows_of(0, times=3)).end()


@pytest.mark.few(22)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("old", "new"), [pair for pair in product(PLACES, PLACES) if pair != ("memory", "memory")])
def test_snapshot_from_any_place_is_installed_in_any_other(worker, expected, operator, old, new):
    first, second = worker(operator, old).process(rows_of(0, times=3)), worker(operator, new, index=1)
    for chunk in first.operator.state.snapshot():
        second.operator.state.install(chunk)
    assert second.end() == expected(operator)
    assert first.end() == expected(operator), "the snapshot has taken nothing away"


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("place", PLACES)
def test_snapshot_and_what_changed_behind_it_are_the_whole_state(worker, expected, operator, place):
    first, second = worker(operator, place).process(rows_of(0)), worker(operator, "lmdb", index=1)
    first.operator.state.changes()
    whole = [chunk.rows for chunk in first.operator.state.snapshot()]
    first.process(rows_of(20, times=2))
    delta = [chunk.rows for chunk in first.operator.state.delta(first.operator.state.changes())]
    for chunk in resolved([delta, whole]):
        second.operator.state.install(Batch(chunk))
    assert second.end() == expected(operator)


@pytest.mark.few(33)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("chunk", [1, 7, 1_000])
def test_keys_that_move_take_their_columns_along(worker, expected, operator, place, chunk):
    old, new = worker(operator, place).process(rows_of(0, times=3)), worker(operator, place, index=1)
    departing = old.operator.state.depart(Move(0, 1, groups=ALL))
    while (state := departing.next_chunk(chunk)) is not None:
        new.operator.state.install(state)
    assert new.end() == expected(operator)
    assert old.end() == worker(operator, "memory").end(), "nothing of them is left"


@pytest.mark.few(22)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("alone", [True, False], ids=["goes alone", "stays alone"])
def test_key_with_a_route_of_its_own_goes_or_stays_alone(worker, expected, operator, place, alone):
    old, new = worker(operator, place).process(rows_of(0, times=3)), worker(operator, place, index=1)
    own = tuple(key_hashes([pa.array(DAYS[:1]), pa.array(NAMES[:1])], "step").tolist())
    departing = old.operator.state.depart(Move(0, 1, keys=own) if alone else Move(0, 1, groups=ALL, staying=own))
    while (state := departing.next_chunk(2)) is not None:
        new.operator.state.install(state)
    there, here = (new, old) if alone else (old, new)
    whole = expected(operator)
    assert [row for row in there.end() if FIRST in row] == [row for row in whole if FIRST in row]
    assert [row for row in here.end() if FIRST not in row] == [row for row in whole if FIRST not in row]


@pytest.mark.parametrize("operator", ["final", "updates", "columns", "first again", "sessions", "rows"])
@pytest.mark.parametrize("place", PLACES)
def test_keys_that_are_asked_for_come_before_the_others(worker, expected, operator, place):
    old, new = worker(operator, place).process(rows_of(0, times=3)), worker(operator, place, index=1)
    departing = old.operator.state.depart(Move(0, 1, groups=ALL))
    (asked,) = departing.fetch([pa.array(DAYS[3:5]), pa.array(NAMES[3:5])])
    new.operator.state.install(asked)
    if place != "server":
        assert sorted(set(asked.rows.column("day").to_pylist())) == DAYS[3:5]
    while (state := departing.next_chunk(3)) is not None:
        new.operator.state.install(state)
    assert new.end() == expected(operator)


@pytest.mark.parametrize("operator", OPERATORS)
def test_state_in_a_server_changes_hands_without_being_sent(worker, operator):
    old = worker(operator, "server").process(rows_of(0, times=3))
    departing = old.operator.state.depart(Move(0, 1, groups=ALL))
    sent = []
    while (state := departing.next_chunk(1_000)) is not None:
        sent.append(state)
    assert sum(state.num_rows for state in sent) >= len(DAYS)
    assert {name for state in sent for name in state.rows.schema.names} <= {*KEYS, "__pane"}


@pytest.mark.parametrize("operator", ["final", "tumbling", "sliding", "sessions"])
@pytest.mark.parametrize("place", ["lmdb", "server"])
def test_results_are_read_and_emitted_in_pieces(worker, operator, place, monkeypatch):
    monkeypatch.setattr("evenflow.engine.keyed_state.stored.stored_rows.SNAPSHOT_CHUNK", 4)
    monkeypatch.setattr("evenflow.engine.keyed_state.stored.stored_series.SNAPSHOT_CHUNK", 4)
    pieces, whole = worker(operator, place).process(rows_of(0)), worker(operator, "memory").process(rows_of(0))
    assert pieces.end() == whole.end()
    assert pieces.batches > 2 * whole.batches


def test_pane_that_no_window_needs_leaves_nothing_behind(worker):
    for place in ("lmdb", "server"):
        windows = worker("sliding", place).process(rows_of(0, times=3))
        windows.end()
        assert windows.operator.state._rows.backend.count() == 0
        assert not windows.operator.state


def test_key_of_another_type_than_before_is_refused_by_name(worker):
    step = worker("final", "lmdb").process(rows_of(0))
    other = pa.record_batch({"day": ["monday"], "name": ["ann"], "v": [1.0], "t": ["t"]})
    with pytest.raises(ef.RecordError, match=r"operator `step`: the key column `day` has values of the types date32.* and string"):
        step.process(Batch(other, np.array([1])))
