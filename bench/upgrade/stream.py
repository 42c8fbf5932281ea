"""The stream of the benchmark: a count in 64 bytes of state for each key, whose rows tell which version of the code has written them.

A row's due time doesn't change when the job stops and starts again, so a row that waited for a restart counts its whole wait. Row `seq`
has the key `key_of(seq, KEYS)`, and its result must be the count `seq // KEYS + 1`: another one shows state that was lost or counted twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import evenflow as ef

from ...engine.batch import Batch
from ...engine.sink import SinkWriter
from ...engine.source import Source, SourceReader
from ..harness.trace import Trace, TraceSink, TraceWriter
from ..recovery.output_log import KEYS, STATE_BYTES, due, key_of

OPERATOR = "stateful_map"
OLD, NEW = 1, 2
"""The versions of the code."""

ROWS = 8192
PIECE = 0.001
"""The seconds of the stream for which a batch waits."""

Touch = Callable[[bytes | None, Mapping[str, Any]], tuple[bytes, dict[str, Any]]]


class DueSource(Source):
    """Rows of `key`, `seq` and `created` (ns, when the row was due; 0 for the first `KEYS`, which come at once).

    `rate`: rows a second after those, None for full speed.
    """

    parallelism = 1
    guarantee = "exactly once (rows are a function of seq; seeks to the checkpointed row)"

    def __init__(self, rate: int | None) -> None:
        self.name, self._rate = "due", rate

    def reader(self, index: int, parallelism: int) -> SourceReader:
        return DueReader(self._rate)


class DueReader(SourceReader):
    """The reader of `DueSource`; it never ends."""

    def __init__(self, rate: int | None) -> None:
        self._rate, self._next, self._begun = rate, 0, 0
        self._least = 1 if rate is None else max(1, int(rate * PIECE))

    def poll(self, max_rows: int) -> Batch | None:
        count = self._due() - self._next
        if count < (self._least if self._next >= KEYS else 1):
            return None
        count = min(count, ROWS, max_rows)
        seq = np.arange(self._next, self._next + count)
        if self._next + count >= KEYS and not self._begun:
            self._begun = time.time_ns()
        self._next += count
        return Batch(pa.record_batch({"key": key_of(seq, KEYS, KEYS), "seq": seq, "created": self._created(seq)}))

    @property
    def finished(self) -> bool:
        return False

    def position(self) -> Any:
        return [self._next, self._begun]

    def seek(self, position: Any) -> None:
        self._next, self._begun = position

    def ready_in(self) -> float:
        if self._rate is None or not self._begun:
            return 0.0
        return max(1e-6, (self._next + self._least - self._due()) / self._rate)

    def _due(self) -> int:
        if not self._begun:
            return KEYS
        return self._next + ROWS if self._rate is None else due(self._begun, time.time_ns(), KEYS, self._rate)

    def _created(self, seq: Any) -> Any:
        if self._rate is None:
            return np.full(len(seq), time.time_ns())
        return np.where(seq < KEYS, 0, self._begun + (seq - KEYS) * 1_000_000_000 // self._rate)


def touch(state: bytes | None, row: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Count in a state of 64 bytes, and say that this was the old code."""
    count = 1 if state is None else int.from_bytes(state[:8], "little") + 1
    return count.to_bytes(STATE_BYTES, "little"), {"seq": row["seq"], "created": row["created"], "count": count, "version": OLD}


def touch_anew(state: bytes | None, row: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Count as `touch` does, and say that this was the new code.

    >>> old, _ = touch(None, {"seq": 7, "created": 0})
    >>> touch_anew(old, {"seq": 8, "created": 0})[1]
    {'seq': 8, 'created': 0, 'count': 2, 'version': 2}
    """
    count = 1 if state is None else int.from_bytes(state[:8], "little") + 1
    return count.to_bytes(STATE_BYTES, "little"), {"seq": row["seq"], "created": row["created"], "count": count, "version": NEW}


class VersionTrace(TraceSink):
    """Records the latency of each row; the `key` of its trace is the version of the code, negative for a wrong count."""

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return VersionWriter()


class VersionWriter(TraceWriter):
    """The writer of `VersionTrace`."""

    def write(self, batch: Batch) -> None:
        seq, created, count, version = (batch.rows.column(name).to_numpy() for name in ("seq", "created", "count", "version"))
        self.note(np.where(count == seq // KEYS + 1, version, -version), created)


def counting(name: str, code: Touch, rate: int | None) -> tuple[ef.Dataflow, VersionTrace]:
    """Return the flow with one version of the code, and its sink."""
    flow, sink = ef.Dataflow(name), VersionTrace()
    flow.read(DueSource(rate)).key_by("key").stateful_map(code).write(sink)
    return flow, sink


def check(trace: Trace, rate: int) -> str:
    """Describe a trace that has each row of its span once, with the right count. Raises ValueError for another one, sorted by due time."""
    created = trace["created"]
    distinct = 1 + int(np.count_nonzero(np.diff(created)))
    missing = round((int(created[-1]) - int(created[0])) * rate / 1e9) + 1 - distinct
    twice, wrong = len(trace) - distinct, int(np.count_nonzero(trace["key"] < 0))
    if missing or twice or wrong:
        raise ValueError(f"of {len(trace):,} rows {missing:,} are missing, {twice:,} came twice, and {wrong:,} have a wrong count")
    return f"each of {len(trace):,} rows once, with the right count"
