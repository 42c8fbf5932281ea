"""The job of the soak benchmark: 100,000 keys at a time, replaced by others, in every kind of keyed state.

- `sessions`: a function discards each key after four rows (`stateful_map`); 100,000 keys are open, then come as many others.
- `visits`: states with a time to live and timers (`process`); the keys wander, so that after 200 s each has given way to another.
- `windows`: the same keys in windows of ten seconds, by two workers, between which groups move.
- `running`: a running aggregate over 100,000 keys that stay, since it never discards one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import evenflow as ef

from ...engine.batch import Batch
from ...engine.sink import SinkWriter
from ..harness.sinks import MeasuringSink

KEYS = 100_000
RATE = 5_000.0
ROWS_OF_A_SESSION = 4
ROWS_PER_NEW_KEY = 10
"""The keys wander by one every ten rows: 500 new ones a second."""

LIFE = "30s"
"""The time to live of a visit's state, in event time."""


def soak_flow(rate: float, keys: int, out: Path) -> tuple[ef.Dataflow, CountSink]:
    """Return the flow, and the sink that counts the running aggregates in this process."""
    flow, counted = ef.Dataflow("bench-soak"), CountSink()
    rows = flow.read(ef.generate(rate=rate, every="200ms", keys=keys, max_delay="500ms")).map_batches(Wandering(keys)).named("wander")
    sessions = rows.key_by("session").stateful_map(one_session).named("sessions")
    visits = rows.key_by("visitor").process(Visits()).named("visits")
    sessions.write(ef.write_parquet(out / "sessions"))
    visits.write(ef.write_json(out / "visits"))
    windows = rows.key_by("visitor").window(ef.tumbling("10s")).aggregate(n=ef.count(), total=ef.sum("value"), most=ef.max("value"))
    windows.named("windows").parallelism(2).write(ef.write_parquet(out / "windows", name="write_windows"))
    rows.key_by("key").aggregate(n=ef.count(), total=ef.sum("value")).named("running").write(counted)
    return flow, counted


class Wandering:
    """Adds the keys that change: `session` and `visitor`."""

    def __init__(self, keys: int) -> None:
        self._keys = keys

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with two more columns.

        >>> seq = pa.array([0, 9, 10, 400_000])
        >>> rows = Wandering(100_000)(pa.record_batch({"key": pa.array([5, 5, 5, 5]), "seq": seq}))
        >>> rows["session"].to_pylist(), rows["visitor"].to_pylist()
        ([0, 9, 10, 100000], [5, 5, 6, 40005])
        """
        seq = rows.column("seq").to_numpy()
        session = seq // (ROWS_OF_A_SESSION * self._keys) * self._keys + seq % self._keys
        visitor = rows.column("key").to_numpy() + seq // ROWS_PER_NEW_KEY
        return rows.append_column("session", pa.array(session)).append_column("visitor", pa.array(visitor))


def one_session(state: list[float] | None, row: Mapping[str, Any]) -> tuple[list[float] | None, dict[str, Any] | None]:
    """Gather the values of a session's rows; the last one ends it.

    >>> one_session([1.0, 2.0, 3.0], {"session": 7, "value": 4.0})
    (None, {'session': 7, 'total': 10.0})
    >>> one_session(None, {"session": 7, "value": 4.0})
    ([4.0], None)
    """
    values = [*(state or ()), row["value"]]
    if len(values) < ROWS_OF_A_SESSION:
        return values, None
    return None, {"session": row["session"], "total": sum(values)}


class Visits(ef.KeyedFunction):
    """Counts a visitor's rows until none has come for `LIFE`, and emits the count at timers."""

    rows = ef.value_state(0, ttl=LIFE)
    lately = ef.list_state(ttl=LIFE)

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> None:
        if not self.rows and not context.ended:
            context.timer(context.time + timedelta(seconds=20))
        self.rows += 1
        self.lately = [*self.lately, row["value"]][-5:]

    def on_timer(self, key: Any, time: datetime, context: ef.KeyContext) -> Iterator[dict[str, Any]]:
        yield {"visitor": key, "rows": self.rows, "lately": sum(self.lately)}


class CountSink(MeasuringSink):
    """Counts in the driver's process the rows that were committed; it gets one number per checkpoint and writer."""

    guarantee = "exactly once (it only counts)"

    def __init__(self) -> None:
        self.name = "count"
        self.rows = 0

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return CountWriter()

    def deliver(self, payload: Any) -> None:
        self.rows += payload


class CountWriter(SinkWriter):
    """The writer of `CountSink`."""

    def __init__(self) -> None:
        self._rows = 0

    def write(self, batch: Batch) -> None:
        self._rows += batch.num_rows

    def prepare(self, checkpoint: int) -> list[Any]:
        rows, self._rows = self._rows, 0
        return [rows] if rows else []
