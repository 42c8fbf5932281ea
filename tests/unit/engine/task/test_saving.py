"""A snapshot is the state at the barrier, unaffected by batches that are processed while its chunks are made."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.keyed_state.memory import memory_arrays, memory_panes, memory_table
from evenflow.engine.plan.physical import Plan
from evenflow.engine.protocol.effects import Finished, Prepared, SavedChunk, Sent
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME
from evenflow.engine.protocol.restored_keys import RestoredKeys
from evenflow.engine.task.core import TaskCore
from evenflow.state.backends import memory


class Collected(ef.Aggregate):
    """A list of all values in order, changed in place."""

    output_type = "string"

    def create(self) -> Any:
        return []

    def add(self, accumulator: Any, row: dict[str, Any]) -> Any:
        accumulator.append(row["value"])
        return accumulator

    def merge(self, a: Any, b: Any) -> Any:
        a.extend(b)
        return a

    def finish(self, accumulator: Any) -> str:
        return repr(sorted(accumulator, key=repr))


def remember(state: Any, row: dict[str, Any]) -> Any:
    """Change a state in place, and forget it now and then."""
    if row["value"] == 7:
        return None, None
    seen = state if state is not None else []
    seen.append(row["value"])
    return seen, {"key": row["key"], "seen": repr(seen)}


def running(state: dict[str, Any], rows: Any) -> Any:
    count = rows.running_count(state["n"])
    return {"n": rows.last(count)}, {"key": rows["key"], "n": count}


FUNCTIONS = {"n": ef.count(), "total": ef.sum("value"), "high": ef.max("value"), "last": ef.last("value"), "all": Collected()}
NUMBERS = {name: function for name, function in FUNCTIONS.items() if name != "all"}

OPERATORS = {
    "tumbling windows": lambda keyed: keyed.window(ef.tumbling("1s")).aggregate(**FUNCTIONS),
    "sliding windows": lambda keyed: keyed.window(ef.sliding("2s", every="500ms")).aggregate(**FUNCTIONS),
    "updates": lambda keyed: keyed.aggregate(**FUNCTIONS),
    "finals": lambda keyed: keyed.aggregate(**FUNCTIONS, emit="final"),
    "numbers": lambda keyed: keyed.aggregate(**NUMBERS),
    "stateful_map": lambda keyed: keyed.stateful_map(remember),
    "stateful_map_columns": lambda keyed: keyed.stateful_map_columns(running, state={"n": "int64"}, columns=("key", "value")),
}

ROWS = st.lists(st.tuples(st.sampled_from((None, "a", "b", "c", "d")), st.integers(0, 3_000), st.integers(0, 9) | st.none()), max_size=6)
BATCHES = st.lists(ROWS, max_size=5)


@cache
def planned(operator: str, combine: bool) -> Plan:
    """Return a plan. It doesn't change, so all jobs share it."""
    flow = ef.Dataflow("f")
    rows = flow.read(ef.from_items([], event_time="ts"))
    OPERATORS[operator](rows.key_by("key")).named("keyed").write(ef.to_list([], name="out"))
    return flow.plan(config=ef.JobConfig(key_groups=4, combine=combine, checkpoint=ef.CheckpointConfig("never written")))


class Job:
    """A source's task and that of a keyed operator with its sink, in one job with one worker of each."""

    def __init__(self, operator: str, combine: bool) -> None:
        plan = planned(operator, combine)
        self.table = plan.tables["keyed"]
        self.source, self.keyed = (TaskCore(task) for task in plan.tasks)
        self.source.open()
        self.keyed.open()
        self.out: list[dict[str, Any]] = []
        self.chunks: list[Batch] = []
        self.prepared: Prepared | None = None

    def read(self, batches: list[list[Any]]) -> Job:
        """Read batches, each followed by a watermark a little behind its newest row."""
        for rows in batches:
            keys, times, values = ([row[place] for row in rows] for place in range(3))
            columns = {"key": pa.array(keys, pa.string()), "value": pa.array(values, pa.int64()), "ts": pa.array(times, pa.int64())}
            batch = Batch(pa.record_batch(columns), pa.array([t * 1_000 for t in times], pa.int64()).to_numpy())
            watermark = max((t * 1_000 for t in times), default=0) - 1_000_000
            self._pass_on([*self.source.polled(batch if rows else None, max(MIN_TIME, watermark), 0.0), *self.source.idle(0.0)])
        return self

    def begin(self) -> Job:
        self._pass_on(self.source.barrier(1, 0.0))
        self.reached = self.source.watermark
        return self

    def save(self) -> None:
        self._note(self.keyed.save(0.0))

    def save_all(self) -> Job:
        while self.keyed.saving:
            self.save()
        return self

    def restore(self, saved: Job) -> Job:
        self.source.restore(saved.reached, {})
        self.keyed.restore(saved.prepared.watermark, saved.prepared.own_times)
        for chunk in saved.chunks:
            self.keyed.install(chunk, RestoredKeys(self.table), 0)
        self.keyed.restored()
        return self

    def end(self) -> list[str]:
        """Return the rows behind the barrier, in no order."""
        self.out = []
        self._pass_on([*self.source.polled(None, MAX_TIME, 0.0), *self.source.exhausted(0.0)])
        return sorted(map(repr, self.out))

    def _pass_on(self, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Sent):
                self._note(self.keyed.receive(effect.channel, effect.element, 0.0))

    def _note(self, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, SavedChunk):
                self.chunks.append(effect.chunk)
            elif isinstance(effect, Prepared):
                self.prepared = effect
            elif isinstance(effect, Finished):
                for stream in effect.committables["out"]:
                    self.out += pa.ipc.open_stream(stream).read_all().to_pylist()


@pytest.mark.few(2)
@pytest.mark.parametrize("combine", [True, False], ids=["combined", "not combined"])
@pytest.mark.parametrize("operator", OPERATORS)
@given(before=BATCHES, meanwhile=BATCHES, behind=BATCHES, chunk=st.sampled_from((1, 2, 1000)))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_snapshot_is_the_state_at_the_barrier_whatever_comes_while_it_is_made(operator, combine, before, meanwhile, behind, chunk):
    with pytest.MonkeyPatch.context() as patch:
        for module in (memory_table, memory_panes, memory_arrays):
            patch.setattr(module, "CHUNK", chunk)
        patch.setattr(memory, "SNAPSHOT_CHUNK", chunk)
        disturbed = Job(operator, combine).read(before).begin()
        for batch in meanwhile:
            disturbed.read([batch])
            disturbed.save()
        disturbed.save_all()
    twin = Job(operator, combine).read(before).begin().save_all()
    restored = Job(operator, combine).restore(disturbed)
    assert restored.read(behind).end() == twin.read(behind).end()


@pytest.mark.parametrize("operator", OPERATORS)
def test_snapshot_of_nothing_has_no_chunks(operator):
    job = Job(operator, combine=False).begin().save_all()
    assert job.chunks == []
    assert job.prepared is not None
