"""A source that replays a Parquet file by the clock: each row is read when it is due."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import evenflow as ef

EVERY = 0.01
"""Seconds between two batches: rows that are read one by one take more of a processor."""


class Replay(ef.Source):
    """The rows of a file in their order, in a batch every `every` seconds.

    The column `due` says when each row comes, in seconds, counted from the first row that is read.
    """

    name = "departures"
    parallelism = 1
    timed = False

    def __init__(self, path: Path, every: float = EVERY) -> None:
        self.path, self.every = str(path), every

    def reader(self, index: int, parallelism: int) -> ef.SourceReader:
        return ReplayReader(self.path, self.every)


class ReplayReader(ef.SourceReader):
    """The reader of `Replay`. Its position is the number of the next row."""

    def __init__(self, path: str, every: float) -> None:
        table = pq.read_table(path).combine_chunks()
        self._due = table["due"].to_numpy()
        self._rows = table.drop_columns(["due"]).to_batches()[0]
        self._next, self._every = 0, every
        self._begun: float | None = None
        self._read = 0.0

    def poll(self, max_rows: int) -> ef.Batch | None:
        if self.finished or self.ready_in() > 0:
            return None
        self._read = time.monotonic()
        if self._begun is None:
            self._begun = self._read - float(self._due[self._next])
        first, ready = self._next, int(np.searchsorted(self._due, self._read - self._begun, "right"))
        self._next = min(ready, first + max_rows)
        return ef.Batch(self._rows.slice(first, self._next - first)) if self._next > first else None

    @property
    def finished(self) -> bool:
        return self._next >= len(self._due)

    def ready_in(self) -> float:
        return max(0.0, self._read + self._every - time.monotonic())

    def position(self) -> Any:
        return self._next

    def seek(self, position: Any) -> None:
        self._next = position
