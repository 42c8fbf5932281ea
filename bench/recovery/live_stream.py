"""The stream of `output_log` for evenflow: a source that seeks like a log, a count in 64 bytes of state per key, and a logging sink."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.batch import Batch
from ...engine.sink import SinkWriter
from ...engine.source import Source, SourceReader
from ..harness.sinks import MeasuringSink
from .output_log import RATE, STATE_BYTES, OutputLog, due, key_of

ROWS = 8192
LEAST = RATE // 1000
"""Rows of a batch."""


class LiveSource(Source):
    """Rows of `key` and `seq`. A row's due time doesn't move when the source seeks back, so missed rows come at once.

    The first batch of each reader is logged in the folder `inputs`.
    """

    parallelism = 1
    guarantee = "exactly once (rows are a function of seq; seeks to the checkpointed row)"

    def __init__(self, inputs: str, keys: int, changing: int) -> None:
        self.name, self._inputs, self._keys, self._changing = "live", inputs, keys, changing

    def reader(self, index: int, parallelism: int) -> SourceReader:
        return LiveReader(self._keys, self._changing, OutputLog(self._inputs))


class LiveReader(SourceReader):
    """The reader of `LiveSource`; it never ends."""

    def __init__(self, keys: int, changing: int, log: OutputLog | None = None) -> None:
        self._next, self._begun, self._keys, self._changing, self._log = 0, 0, keys, changing, log

    def poll(self, max_rows: int) -> Batch | None:
        ready = self._due() - self._next
        if ready < (LEAST if self._next >= self._keys else 1):
            return None
        count = min(ready, ROWS, max_rows)
        seq = np.arange(self._next, self._next + count)
        self._next += count
        if self._log is not None:
            self._log.note(self._next - 1, count, 0)
            self._log.close()
            self._log = None
        if self._next >= self._keys and not self._begun:
            self._begun = time.time_ns()
        return Batch(pa.record_batch({"key": key_of(seq, self._keys, self._changing), "seq": seq}))

    @property
    def finished(self) -> bool:
        return False

    def position(self) -> Any:
        return [self._next, self._begun]

    def seek(self, position: Any) -> None:
        self._next, self._begun = position

    def ready_in(self) -> float:
        return max(1e-6, (self._next + LEAST - self._due()) / RATE)

    def _due(self) -> int:
        return due(self._begun, time.time_ns(), self._keys) if self._begun else self._keys


def count(state: bytes | None, row: Mapping[str, Any]) -> tuple[bytes, dict[str, int]]:
    """Count in a state of 64 bytes; emits the row with the count.

    >>> count(count(None, {"seq": 7})[0], {"seq": 8})[1]
    {'seq': 8, 'n': 2}
    """
    n = int.from_bytes(state[:8], "little") + 1 if state is not None else 1
    return n.to_bytes(STATE_BYTES, "little"), {"seq": row["seq"], "n": n}


class OutputSink(MeasuringSink):
    """Logs in `folder` when rows of `seq` and `n` were written."""

    def __init__(self, folder: str, keys: int, changing: int) -> None:
        self.name, self._folder, self._keys, self._changing = "outputs", folder, keys, changing

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return OutputWriter(self._folder, self._keys, self._changing)


class OutputWriter(SinkWriter):
    """The writer of `OutputSink`."""

    def __init__(self, folder: str, keys: int, changing: int) -> None:
        self._log, self._keys, self._changing = OutputLog(folder), keys, changing

    def write(self, batch: Batch) -> None:
        seq, counts = (batch.rows.column(name).to_numpy() for name in ("seq", "n"))
        self._log.note_counts(seq, counts, self._keys, self._changing)

    def prepare(self, checkpoint: int) -> list[Any]:
        return []

    def close(self) -> None:
        self._log.close()
