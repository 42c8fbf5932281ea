"""A chain of deltas adds up to the state at its last barrier, through changes, moves, failures and restores."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.keyed_state.memory import pane
from evenflow.engine.keys.encoding import key_hashes
from evenflow.engine.plan.physical import Plan
from evenflow.engine.protocol.effects import Prepared
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.protocol.routing import Move
from evenflow.engine.snapshots.chain import resolved
from evenflow.engine.task.core import TaskCore
from evenflow.engine.task.saving import Chain, Snapshots
from evenflow.state.backends import base, memory
from evenflow.state.files import StateFile

GROUPS = 4
KEYS = (None, "a", "b", "c", "d", "e")


def remember(state: Any, row: dict[str, Any]) -> Any:
    """Append to a list that is changed in place, and forget it now and then."""
    if row["value"] == 7:
        return None, None
    seen = state if state is not None else []
    seen.append(row["value"])
    return seen, None


def running(state: dict[str, Any], rows: Any) -> Any:
    return {"n": rows.last(rows.running_count(state["n"]))}, None


class Remembering(ef.KeyedFunction):
    """Values that are forgotten by timers, and some that expire."""

    total = ef.value_state(default=0)
    last = ef.value_state(ttl="1s")

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        self.total += row["value"]
        self.last = row["value"]
        if row["value"] % 2:
            context.timer(context.time + timedelta(seconds=1.5))
        return ()

    def on_timer(self, key: Any, time: datetime, context: ef.KeyContext) -> Any:
        del self.total
        return ()


FUNCTIONS = {"n": ef.count(), "total": ef.sum("value"), "high": ef.max("value"), "distinct": ef.approx_distinct("value")}

OPERATORS = {
    "tumbling windows": lambda keyed: keyed.window(ef.tumbling("1s")).aggregate(**FUNCTIONS),
    "sliding windows": lambda keyed: keyed.window(ef.sliding("2s", every="500ms")).aggregate(**FUNCTIONS),
    "updates": lambda keyed: keyed.aggregate(**FUNCTIONS),
    "stateful_map": lambda keyed: keyed.stateful_map(remember),
    "stateful_map_columns": lambda keyed: keyed.stateful_map_columns(running, state={"n": "int64"}, columns=("key", "value")),
    "process": lambda keyed: keyed.process(Remembering()),
}

VALUES = st.integers(0, 9)
ROWS = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 900), VALUES), min_size=1, max_size=4)
MOVES = st.tuples(st.integers(0, 1), st.sets(st.integers(0, GROUPS - 1)), st.sets(st.sampled_from(KEYS), max_size=2))
STEPS = st.one_of(
    st.tuples(st.just("rows"), ROWS),
    st.tuples(st.just("rows"), ROWS),
    st.tuples(st.just("time"), st.integers(0, 1_200)),
    st.tuples(st.just("move"), MOVES),
    st.tuples(st.just("checkpoint"), st.tuples(st.sampled_from(("complete", "complete", "fails", "whole")), ROWS)),
    st.tuples(st.just("restore"), st.none()),
)


@cache
def planned(operator: str, backend: str) -> Plan:
    """Plan a job with two workers of the operator. A plan doesn't change, so all worlds share it."""
    flow = ef.Dataflow("f")
    rows = flow.read(ef.from_items([], event_time="ts"))
    OPERATORS[operator](rows.key_by("key")).named("keyed").parallelism(2).write(ef.to_list([], name="out"))
    config = ef.JobConfig(key_groups=GROUPS, combine=False, checkpoint=ef.CheckpointConfig("never written"), state=ef.StateConfig(backend))
    return flow.plan(config=config)


class World:
    """Two workers of an operator and the chains of their complete checkpoints; keys are where the last move put them."""

    def __init__(self, operator: str, backend: str) -> None:
        plan = planned(operator, backend)
        self.specs = [task for task in plan.tasks if task.stage == "keyed"]
        self.table = plan.tables["keyed"]
        self.now, self.number, self.base = 1_000, 0, 0
        self.saved = {0: ([[], []], self.table, self.now)}
        self.kinds = Counter()
        self.open: list[TaskCore] = []
        self.workers = [self.fresh(index) for index in range(2)]

    def fresh(self, index: int) -> Any:
        core = TaskCore(self.specs[index])
        core.open()
        self.open.append(core)
        return core.operators[0], Snapshots(core.operators[0].state, core.operators[0].pending)

    def rows(self, rows: list[Any]) -> None:
        keys, values = [row[0] for row in rows], [row[2] for row in rows]
        times = np.array([(self.now + row[1]) * 1_000 for row in rows], np.int64)
        owners = self.table.owners(key_hashes([pa.array(keys, pa.string())], "keyed"))
        for index, (operator, _) in enumerate(self.workers):
            mine = np.flatnonzero(owners == index)
            if len(mine):
                columns = {"key": pa.array([keys[i] for i in mine], pa.string()), "value": pa.array([values[i] for i in mine], pa.int64())}
                operator.process(Batch(pa.record_batch(columns), times[mine]), nowhere)

    def time(self, step: int) -> None:
        self.now += step
        for operator, _ in self.workers:
            operator.advance((self.now - 500) * 1_000, nowhere)

    def move(self, wanted: Any) -> None:
        source, groups, keys = wanted
        here = tuple(group for group in sorted(groups) if self.table.groups[group] == source)
        hashes = key_hashes([pa.array(sorted(keys, key=repr), pa.string())], "keyed")
        there = self.table.owners(hashes)
        single = tuple(int(h) for h, owner in zip(hashes, there, strict=True) if owner == source and int(h) % GROUPS not in here)
        staying = tuple(key for key, worker in self.table.keys.items() if worker != source and key % GROUPS in here)
        move = Move(source, 1 - source, here, single, staying)
        departing = self.workers[source][0].state.depart(move)
        while (batch := departing.next_chunk(2)) is not None:
            self.workers[1 - source][0].state.install(batch)
        self.table = self.table.after([move])

    def checkpoint(self, wanted: Any) -> None:
        outcome, meanwhile = wanted
        self.number += 1
        expected = [list(operator.state.snapshot()) for operator, _ in self.workers]
        base = 0 if outcome == "whole" else self.base
        savings = [snapshots.begin(Prepared(self.number, {}), base) for _, snapshots in self.workers]
        table, now = self.table, self.now
        files: list[list[pa.RecordBatch]] = [[], []]
        for row in meanwhile:
            self.rows([row])
            for file, saving in zip(files, savings, strict=True):
                if (chunk := saving.next()) is not None:
                    file.append(chunk.rows)
        for file, saving in zip(files, savings, strict=True):
            while (chunk := saving.next()) is not None:
                file.append(chunk.rows)
        if outcome == "fails":
            return
        before = self.saved[self.base][0]
        chains = [[*(before[i] if savings[i].prepared.base else []), *([file] if file else [])] for i, file in enumerate(files)]
        self.kinds.update("delta" if saving.prepared.base else "whole" for saving in savings)
        self.saved[self.number] = chains, table, now
        self.base = self.number
        for index, chain in enumerate(chains):
            restored, told = self.fresh(index)[0], self.fresh(index)[0]
            install(restored, now, resolved(reversed(chain)))
            install(told, now, [chunk.rows for chunk in expected[index]])
            assert content(restored) == content(told)

    def restore(self, _: None) -> None:
        chains, self.table, self.now = self.saved[self.base]
        self.workers = [self.fresh(index) for index in range(2)]
        for (operator, snapshots), chain in zip(self.workers, chains, strict=True):
            install(operator, self.now, resolved(reversed(chain)))
            if self.base:
                files = [StateFile("", 0, "", sum(chunk.num_rows for chunk in file)) for file in chain]
                snapshots.continue_from(self.base, files)

    def close(self) -> None:
        for core in self.open:
            core.close()


def nowhere(batch: Batch, port: str = "out") -> None:
    """Ignore the output."""


def install(operator: Any, now: int, chunks: Any) -> None:
    operator.advance((now - 500) * 1_000, nowhere)
    for chunk in chunks:
        operator.state.install(Batch(chunk))


def content(operator: Any) -> list[str]:
    """Return the operator's content, in no order; windows are emitted for it."""
    emitted: list[Batch] = []
    if hasattr(operator, "windows"):
        assert all(operator.windows.last_end(start) > operator.watermark for start in operator.state.starts()), "what was emitted is gone"
        operator.advance(min(MAX_TIME, 10**15), lambda batch, port="out": emitted.append(batch))
    else:
        emitted += operator.state.snapshot()
    return sorted(repr(sorted(row.items())) for batch in emitted for row in batch.rows.to_pylist())


@pytest.mark.few(1)
@pytest.mark.parametrize("backend", ["memory", "lmdb"])
@pytest.mark.parametrize("operator", OPERATORS)
@given(steps=st.lists(STEPS, min_size=10, max_size=30), any_length=st.booleans(), most_noted=st.sampled_from((2, 100)))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_chain_adds_up_to_the_state_at_its_last_barrier(operator, backend, steps, any_length, most_noted):
    world = World(operator, backend)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pane, "_SMALLEST", 3)
        for module in (base, memory):
            patch.setattr(module, "MOST_NOTED", most_noted)
        if any_length:
            patch.setattr(Chain, "has_room", lambda chain, rows: True)
        try:
            for kind, argument in steps:
                getattr(world, kind)(argument)
            world.checkpoint(("complete", [("a", 0, 1)]))
            world.checkpoint(("complete", [("b", 0, 1)]))
        finally:
            world.close()


@pytest.mark.few(4)
@pytest.mark.parametrize("backend", ["memory", "lmdb"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_few_changes_are_saved_alone_until_they_outgrow_the_whole_state(operator, backend):
    world = World(operator, backend)
    try:
        world.rows([(key, 0, 2) for key in KEYS])
        for _ in range(12):
            world.checkpoint(("complete", [("a", 0, 2)]))
        assert world.kinds["delta"] >= 12
        assert world.kinds["whole"] >= 3, "the first of each worker, and one again"
        assert max(len(chain) for chain in world.saved[world.base][0]) <= len(KEYS) + 1
    finally:
        world.close()


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_key_that_changed_at_a_failed_checkpoint_and_then_left_is_not_restored(operator, backend, monkeypatch):
    monkeypatch.setattr(Chain, "has_room", lambda chain, rows: True)
    world = World(operator, backend)
    everything = [(key, 0, 2) for key in KEYS]
    try:
        world.rows(everything)
        world.checkpoint(("complete", []))
        world.rows(everything)
        world.checkpoint(("fails", []))
        world.move((0, set(range(GROUPS)), set()))
        world.checkpoint(("complete", []))
        world.move((1, {0, 1}, set()))
        world.rows(everything)
        world.checkpoint(("complete", everything))
        assert world.kinds == {"whole": 2, "delta": 4}
    finally:
        world.close()


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_a_pane_that_was_forgotten_is_one_row_of_a_delta_however_many_keys_it_had(backend, monkeypatch):
    monkeypatch.setattr(Chain, "has_room", lambda chain, rows: True)
    world = World("tumbling windows", backend)
    try:
        world.rows([(key, 0, 2) for key in KEYS])
        world.checkpoint(("complete", []))
        world.time(3_000)
        world.checkpoint(("complete", []))
        assert world.kinds == {"whole": 2, "delta": 2}
        assert [sum(chunk.num_rows for chunk in chain[-1]) for chain in world.saved[world.base][0]] == [1, 1]
    finally:
        world.close()
