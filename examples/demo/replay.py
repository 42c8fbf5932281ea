"""A source that replays a Parquet file by the clock: each row is read when it is due."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import evenflow as ef

EVERY = 0.01
"""Seconds between two batches at least: rows that are read one by one take more of a processor."""


class Replay(ef.Source):
    """The rows of a file in their order; the column `due` says when, in seconds, counted from the first row that is read."""

    name = "departures"
    parallelism = 1
    timed = False

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def reader(self, index: int, parallelism: int) -> ef.SourceReader:
        return ReplayReader(self.path)


class ReplayReader(ef.SourceReader):
    """The reader of `Replay`. Its position is the number of the next row."""

    def __init__(self, path: str) -> None:
        table = pq.read_table(path).combine_chunks()
        self._due = table["due"].to_numpy()
        self._rows = table.drop_columns(["due"]).to_batches()[0]
        self._next = 0
        self._begun: float | None = None

    def poll(self, max_rows: int) -> ef.Batch | None:
        if self.finished:
            return None
        if self._begun is None:
            self._begun = time.monotonic() - float(self._due[self._next])
        first, ready = self._next, int(np.searchsorted(self._due, time.monotonic() - self._begun, "right"))
        self._next = min(ready, first + max_rows)
        return ef.Batch(self._rows.slice(first, self._next - first)) if self._next > first else None

    @property
    def finished(self) -> bool:
        return self._next >= len(self._due)

    def ready_in(self) -> float:
        return EVERY

    def position(self) -> Any:
        return self._next

    def seek(self, position: Any) -> None:
        self._next = position
