"""A source that emits every key once at full speed, so that all state exists, and then records at a steady rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...connectors.generated.generate import generate
from ...engine.batch import Batch
from ...engine.source import Source, SourceReader

ROWS = 8192


class PreloadedSource(Source):
    """Rows of `key` (0 .. keys-1) and `created` (ns, when the row was due; 0 for the first row of each key).

    `rate`: rows a second after the first `keys`, None for full speed. Their keys follow Zipf's law with the exponent `zipf` (0: uniform)
    over the first `changing` keys, None for all.
    """

    parallelism = 1
    guarantee = "at least once (it only drives a benchmark)"

    def __init__(self, keys: int, rate: float | None, changing: int | None = None, zipf: float = 0.0) -> None:
        self.name = "preload"
        self._keys, self._rate, self._changing, self._zipf = keys, rate, changing or keys, zipf

    def reader(self, index: int, parallelism: int) -> SourceReader:
        steady = generate(rate=self._rate, keys=self._changing, zipf=self._zipf, created=True, rows_per_batch=ROWS)
        return PreloadedReader(self._keys, steady.reader(0, 1))


class PreloadedReader(SourceReader):
    """The reader of `PreloadedSource`; it never ends."""

    def __init__(self, keys: int, steady: SourceReader) -> None:
        self._keys, self._steady, self._given = keys, steady, 0

    def poll(self, max_rows: int) -> Batch | None:
        if self._given >= self._keys:
            batch = self._steady.poll(max_rows)
            return None if batch is None else Batch(batch.rows.select(["key", "created"]))
        keys = np.arange(self._given, min(self._given + ROWS, self._keys))
        self._given += len(keys)
        return Batch(pa.record_batch({"key": keys, "created": np.zeros(len(keys), np.int64)}))

    @property
    def finished(self) -> bool:
        return False

    def position(self) -> Any:
        return [self._given, self._steady.position()]

    def seek(self, position: Any) -> None:
        self._given = position[0]
        self._steady.seek(position[1])

    def ready_in(self) -> float:
        return self._steady.ready_in() if self._given >= self._keys else 0.0
