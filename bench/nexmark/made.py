"""The events of a check: their seed, their order, and the files that an oracle reads.

>>> import tempfile
>>> made = Made(Path(tempfile.mkdtemp()), events=100, seed=7, disorder=50).write()
>>> pq.read_table(made.folder / "auction")["seq"].to_pylist()[:3], made.max_delay
([3, 1, 2], '5ms')
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import evenflow as ef

from ...connectors.nexmark.schemas import SCHEMAS
from ...connectors.nexmark.source import EVENT_RATE, STREAMS
from .data import PIECE


@dataclass(frozen=True, slots=True)
class Made:
    """Generated events of all streams, as Parquet files in `folder / stream`.

    `disorder`: this many events in a row come in another order; 1 for none.
    """

    folder: Path
    events: int
    seed: int = 0
    disorder: int = 1

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `ef.nexmark` for the same events."""
        order = {"out_of_order_group_size": self.disorder, "event_rate": EVENT_RATE}
        return {"events": self.events, "seed": self.seed, **order}

    @property
    def max_delay(self) -> str:
        """The largest delay of an event."""
        return f"{ceil(self.disorder * 1000 / EVENT_RATE)}ms"

    def write(self) -> Made:
        """Write the files."""
        for stream in STREAMS:
            (self.folder / stream).mkdir(parents=True)
            reader = ef.nexmark(stream, rows_per_batch=PIECE, **self.arguments).reader(0, 1)
            with pq.ParquetWriter(self.folder / stream / "events.parquet", SCHEMAS[stream]) as file:
                while (batch := reader.poll(PIECE)) is not None:
                    file.write_batch(batch.rows)
        return self
