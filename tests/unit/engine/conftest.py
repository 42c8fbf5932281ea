"""Operators driven by hand: batches and watermarks in, rows out."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenflow.engine.batch import Batch
from evenflow.engine.context import Context
from evenflow.engine.keys.load import KeyLoad
from evenflow.engine.operators.base import Operator
from evenflow.state.backends.settings import StateSettings

JOBS = count()


class Driven:
    """One instance of an operator named `step`; `rows` and `times` collect what it emits, by port."""

    def __init__(self, operator: Operator, state: StateSettings | None = None, index: int = 0) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {"out": [], "late": [], "dead_letters": []}
        self.times: dict[str, list[int]] = {"out": [], "late": [], "dead_letters": []}
        self.schemas: list[pa.Schema] = []
        clock = self._clock = [0]  # the instance must not refer to `self`, or it would never be closed
        settings = StateSettings() if state is None else state
        self.operator: Any = operator.open(Context("step", index, 1 + index, 16, KeyLoad(16), settings, lambda: clock[0]))
        weakref.finalize(self, self.operator.close)

    def process(self, rows: Any, times: list[int] | None = None) -> list[dict[str, Any]]:
        """Process rows (dicts, or columns by name); return the rows emitted on the port `out` since the last call."""
        table = pa.record_batch(rows) if isinstance(rows, dict) else pa.RecordBatch.from_pylist(rows)
        return self.process_batch(Batch(table, None if times is None else np.array(times, np.int64)))

    def process_batch(self, batch: Batch) -> list[dict[str, Any]]:
        return self._new(lambda: self.operator.process(batch, self._emit))

    def advance(self, watermark: int) -> list[dict[str, Any]]:
        return self._new(lambda: self.operator.advance(watermark, self._emit))

    @property
    def clock(self) -> int:
        """Microseconds of the worker's clock."""
        return self._clock[0]

    @clock.setter
    def clock(self, now: int) -> None:
        self._clock[0] = now

    def tick(self, clock: int) -> list[dict[str, Any]]:
        self.clock = clock
        return self._new(lambda: self.operator.tick(self._emit))

    def finish(self) -> list[dict[str, Any]]:
        return self._new(lambda: self.operator.finish(self._emit))

    def into(self, other: Driven) -> Driven:
        """Send later batches to `other`."""
        self._emit = lambda batch, port="out": other.process_batch(batch)  # type: ignore[method-assign]
        return self

    def _new(self, step: Any) -> list[dict[str, Any]]:
        before = len(self.rows["out"])
        step()
        return self.rows["out"][before:]

    def _emit(self, batch: Batch, port: str = "out") -> None:
        assert batch.num_rows, "an operator emitted a batch without rows"
        self.rows[port] += batch.to_rows()
        self.times[port] += [] if batch.times is None else batch.times.tolist()
        self.schemas.append(batch.rows.schema)


@pytest.fixture(scope="session")
def drive():
    return Driven


@pytest.fixture(scope="module")
def drive_in(request: Any) -> Callable[[str], Callable[[Operator], Driven]]:
    """Return a factory of factories: operators with their state in this backend, each in a server under its own job name."""

    def make(place: str) -> Callable[[Operator], Driven]:
        backend = request.getfixturevalue("state_server") if place == "server" else place
        return lambda operator: Driven(operator, StateSettings(backend, job=f"driven-{next(JOBS)}"))

    return make
