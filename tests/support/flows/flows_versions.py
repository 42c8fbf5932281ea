"""Flows that simulated runs share: programs in several versions, which keep states of other shapes and emit the same rows.

The source has one worker, so that the rows of a key come in one order whatever the number of workers was before.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from disordered import source

import evenflow as ef
from evenflow.engine.plan.physical import Stage
from evenflow.engine.plan.task_spec import ChainedOperator
from evenflow.engine.protocol.ids import CodeVersion


class Half(enum.Enum):
    FIRST = "first"
    SECOND = "second"
    UNKNOWN = "unknown"


HALVES = {True: Half.FIRST, False: Half.SECOND, None: Half.UNKNOWN}


@dataclass(frozen=True)
class Seen:
    """The newest row of a lane, as version 1 keeps it."""

    seq: int
    half: str


@dataclass(frozen=True)
class Newest:
    """The same, as later versions keep it."""

    seq: int
    half: Half
    even: bool


class Visits(ef.KeyedFunction):
    """The rows of all versions; these say how they keep what is in them."""

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        before, recent = self.told()
        self.add(row)
        context.timer(context.time + timedelta(seconds=2))
        context.timer(context.time + timedelta(seconds=20))
        yield {"seq": row["seq"], "before": before, "recent": recent, "now": self.told()[0]}
        if row["seq"] % 31 == 30:
            self.forget()

    def on_timer(self, key: Any, time: datetime, context: ef.KeyContext) -> Any:
        after_all = time.second >= 30
        yield {"seq": -1, "before": f"{key} at {time}", "recent": None, "now": self.told()[0] if after_all else ""}


class First(Visits):
    n = ef.value_state(0)
    total = ef.value_state(0.0)
    seqs = ef.list_state()
    last = ef.value_state(type=Seen)
    recent = ef.value_state(ttl="1s")

    def add(self, row: dict[str, Any]) -> None:
        self.n += 1
        self.total += row["price"]
        self.seqs.append(row["seq"])
        self.last, self.recent = Seen(row["seq"], HALVES[row["half"]].value), row["seq"]

    def told(self) -> tuple[str, Any]:
        last = None if self.last is None else (self.last.seq, self.last.half)
        return f"{self.n} {self.total} {sorted(self.seqs)} {last}", self.recent

    def forget(self) -> None:
        del self.n, self.total, self.last
        self.seqs.clear()


class Second(Visits):
    """Counts under another name, in eighths, by the parity of `seq`, and with an object of another class."""

    state_version = 2
    count = ef.value_state(0, renamed_from="n")
    total = ef.value_state(0, type=int)
    by_rest = ef.map_state(keys=int, type=list[int])
    last = ef.value_state(type=Newest)
    freshest = ef.value_state(ttl="1s", renamed_from="recent")

    def migrate_state(self, version: int, state: dict[str, Any]) -> dict[str, Any]:
        assert version == 1, version
        seqs = state.pop("seqs", [])
        state["by_rest"] = {rest: [seq for seq in seqs if seq % 2 == rest] for rest in {seq % 2 for seq in seqs}}
        if "total" in state:
            state["total"] = int(state["total"] * 8)
        if (last := state.get("last")) is not None:
            state["last"] = Newest(last["seq"], Half(last["half"]), last["seq"] % 2 == 0)
        return state

    def add(self, row: dict[str, Any]) -> None:
        self.count += 1
        self.total += int(row["price"] * 8)
        rest = row["seq"] % 2
        self.by_rest[rest] = [*self.by_rest.get(rest, []), row["seq"]]
        self.last, self.freshest = Newest(row["seq"], HALVES[row["half"]], rest == 0), row["seq"]

    def told(self) -> tuple[str, Any]:
        last = None if self.last is None else (self.last.seq, self.last.half.value)
        return f"{self.count} {self.total / 8} {sorted(seq for seqs in self.by_rest.values() for seq in seqs)} {last}", self.freshest

    def forget(self) -> None:
        del self.count, self.total, self.last
        self.by_rest.clear()


class Third(Second):
    """Counts from 1,000, so that a migration that is missing or repeated shows."""

    state_version = 3

    def migrate_state(self, version: int, state: dict[str, Any]) -> dict[str, Any]:
        state = super().migrate_state(version, state) if version == 1 else state
        return {**state, "count": state.get("count", 0) + 1_000}

    def add(self, row: dict[str, Any]) -> None:
        self.count = self.count or 1_000
        super().add(row)

    def told(self) -> tuple[str, Any]:
        told, recent = super().told()
        count, _, rest = told.partition(" ")
        return f"{int(count) - 1_000 if int(count) else 0} {rest}", recent


def _visits(function: Visits) -> ef.Dataflow:
    flow = ef.Dataflow("visits")
    flow.read(source()).parallelism(1).key_by("lane").process(function).named("visits").write(ef.to_list([]))
    return flow


def first_visits() -> ef.Dataflow:
    return _visits(First())


def second_visits() -> ef.Dataflow:
    return _visits(Second())


def third_visits() -> ef.Dataflow:
    return _visits(Third())


@dataclass
class Sum:
    """The state of a `stateful_map` in version 2."""

    eighths: int
    newest: Newest | None = None


def first_sums() -> ef.Dataflow:
    def add(state: Any, row: dict[str, Any]) -> Any:
        state = (state or 0.0) + row["price"]
        return None if row["seq"] % 31 == 30 else state, {"seq": row["seq"], "sum": state}

    flow = ef.Dataflow("sums")
    flow.read(source()).parallelism(1).key_by("lane").stateful_map(add).named("sums").write(ef.to_list([]))
    return flow


def second_sums() -> ef.Dataflow:
    def add(state: Sum | None, row: dict[str, Any]) -> Any:
        state = state or Sum(0)
        state.eighths += int(row["price"] * 8)
        state.newest = Newest(row["seq"], HALVES[row["half"]], row["seq"] % 2 == 0)
        return None if row["seq"] % 31 == 30 else state, {"seq": row["seq"], "sum": state.eighths / 8}

    def migrate(version: int, state: float) -> Sum:
        assert version == 1, version
        return Sum(int(state * 8))

    flow = ef.Dataflow("sums")
    sums = flow.read(source()).parallelism(1).key_by("lane").stateful_map(add, state=Sum, state_version=2, migrate_state=migrate)
    sums.named("sums").write(ef.to_list([]))
    return flow


def third_sums() -> ef.Dataflow:
    def add(state: Any, row: dict[str, Any]) -> Any:
        state = (state or 1_000) + int(row["price"] * 8)
        return None if row["seq"] % 31 == 30 else state, {"seq": row["seq"], "sum": (state - 1_000) / 8}

    def migrate(version: int, state: Any) -> int:
        return 1_000 + int(state * 8 if version == 1 else state["eighths"])

    flow = ef.Dataflow("sums")
    flow.read(source()).parallelism(1).key_by("lane").stateful_map(add, state_version=3, migrate_state=migrate).named("sums").write(
        ef.to_list([])
    )
    return flow


VISITS = first_visits, second_visits, third_visits
SUMS = first_sums, second_sums, third_sums
PROGRAMS = {"process": VISITS, "stateful_map": SUMS}


def migrating(program: str) -> Callable[[Stage, CodeVersion], Sequence[ChainedOperator]]:
    """Return a function of the operators of a stage in a version of the code, for upgrades of the first program."""
    plans = [make_flow().plan() for make_flow in PROGRAMS[program]]

    def code(stage: Stage, version: CodeVersion) -> Sequence[ChainedOperator]:
        return stage.chain if stage.is_source else plans[min(version, len(plans)) - 1].stage_of(stage.name).chain

    return code
