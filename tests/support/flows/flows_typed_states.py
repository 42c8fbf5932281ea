"""Flows that simulated runs share: states of declared types, whose values are dataclasses, arrays, enums and scalars of Arrow."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from disordered import source

import evenflow as ef


class Half(enum.Enum):
    FIRST = "first"
    SECOND = "second"
    UNKNOWN = "unknown"


class Seen(NamedTuple):
    """A row of the past."""

    seq: int
    price: float


@dataclass(frozen=True, slots=True)
class Last:
    """The newest row of a half."""

    seq: int
    half: Half


@dataclass(slots=True)
class Past:
    """The past of a lane."""

    rows: list[Seen] = field(default_factory=list)
    last: Last | None = None
    halves: dict[Half, set[Last]] = field(default_factory=dict)
    totals: np.ndarray = field(default_factory=lambda: np.zeros((2, 2)))
    value: pa.Scalar = field(default_factory=lambda: pa.scalar(0, pa.int16()))

    def add(self, row: dict[str, Any]) -> None:
        """Change every field in place, or replace it."""
        self.rows.append(Seen(row["seq"], row["price"]))
        self.last = Last(row["seq"], HALVES[row["half"]])
        self.halves.setdefault(self.last.half, set()).add(self.last)
        self.totals[row["seq"] % 2, 1] += row["price"]
        self.value = pa.scalar(self.value.as_py() + 1, pa.int16())

    def told(self) -> dict[str, Any]:
        """Return everything, and the types, as one text, regardless of the order of rows."""
        halves = {half.name: sorted(last.seq for last in lasts) for half, lasts in self.halves.items()}
        kinds = f"{self.totals.shape} {self.totals.dtype} {self.value.type} {[type(each).__name__ for each in (self.last, *self.rows)]}"
        return {
            "rows": sorted(row.seq for row in self.rows),
            "halves": str(sorted(halves.items())),
            "total": self.totals.sum(),
            "value": self.value.as_py(),
            "kinds": kinds,
        }


HALVES = {True: Half.FIRST, False: Half.SECOND, None: Half.UNKNOWN}


def dataclasses_of_stateful_map() -> ef.Dataflow:
    def remember(state: Past | None, row: dict[str, Any]) -> tuple[Past | None, dict[str, Any]]:
        state = state or Past()
        state.add(row)
        return None if row["seq"] % 31 == 30 else state, {"seq": row["seq"], **state.told()}

    flow = ef.Dataflow("remembered")
    flow.read(source()).key_by("lane").stateful_map(remember, state=Past).write(ef.to_list([]))
    return flow


class Pasts(ef.KeyedFunction):
    """States of every kind with declared types; one expires, and timers read them."""

    past = ef.value_state(Past(), type=Past)
    last = ef.value_state(type=Last, ttl="3s")
    rows = ef.list_state(type=Seen)
    by_half = ef.map_state(keys=Half, type=list[Last])
    count = ef.value_state(0)

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        before, past = self.last, self.past
        past.add(row)
        self.past, self.last = past, past.last
        self.rows.append(past.rows[-1])
        half = HALVES[row["half"]]
        self.by_half[half] = [*self.by_half.get(half, []), Last(row["seq"], half)]
        self.count += 1
        context.timer(context.time + timedelta(seconds=20))
        yield {"seq": row["seq"], "before": None if before is None else before.seq, "n": len(self.rows), **self.past.told()}

    def on_timer(self, key: Any, time: datetime, context: ef.KeyContext) -> Any:
        if self.count:
            halves = sorted((half.value, [each.seq for each in lasts]) for half, lasts in self.by_half.items())
            yield {"seq": -1, "before": self.count, "n": key, **self.past.told(), "halves": str(halves)}
            del self.count, self.past


def states_of_declared_types() -> ef.Dataflow:
    flow = ef.Dataflow("pasts")
    flow.read(source()).key_by("lane").process(Pasts()).write(ef.to_list([]))
    return flow


def refused_rows_of_declared_types() -> ef.Dataflow:
    """Refuse rows after their states were changed in place, and states of another type."""

    def remember(state: Past | None, row: dict[str, Any]) -> Any:
        state = state or Past()
        state.add(row)
        if row["seq"] % 7 == 3:
            raise ValueError("poison")
        if row["seq"] % 7 == 5:
            state.rows.append((1, 2.0))  # type: ignore[arg-type]
        return state, {"seq": row["seq"], **state.told()}

    flow = ef.Dataflow("refused")
    kept = flow.read(source()).key_by("lane").stateful_map(remember, state=Past, on_error="skip")
    kept.write(ef.to_list([], name="kept"))
    return flow


FLOWS = (dataclasses_of_stateful_map, states_of_declared_types, refused_rows_of_declared_types)
