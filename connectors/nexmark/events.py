"""The source of all three NexMark streams in one, as nexmark/nexmark's generator for Flink has it: an event's kind, and a struct for each.

>>> batch = nexmark_events(events=50).reader(0, 1).poll(5)
>>> batch.rows.schema.names, batch.rows["event_type"].to_pylist()
(['event_type', 'person', 'auction', 'bid', 'dateTime'], [0, 1, 1, 1, 2])
>>> batch.rows["auction"].is_valid().to_pylist()
[False, True, True, True, False]
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...engine.batch import Batch
from ..generated.numbered import NumberedRows, NumberedSource
from .numbering import EPOCH, PLACES
from .schemas import SCHEMAS
from .settings import NexmarkSettings
from .source import BASE_TIME, EVENT_RATE, MAKERS

_KINDS: Final = np.repeat(np.arange(len(PLACES), dtype=np.int32), [len(places) for places in PLACES.values()])
"""The kind of each event of an epoch: 0 a person, 1 an auction, 2 a bid."""


@dataclass(frozen=True, slots=True)
class NexmarkEventRows(NumberedRows):
    """The events in the order of their numbers."""

    time_column = "dateTime"

    settings: NexmarkSettings

    def batch(self, numbers: npt.NDArray[np.int64]) -> Batch:
        times = self.settings.times(numbers)
        kinds = _KINDS[numbers % EPOCH]
        columns: dict[str, pa.Array] = {"event_type": pa.array(kinds)}
        for kind, (stream, schema) in enumerate(SCHEMAS.items()):
            ours = kinds == kind
            made = MAKERS[stream](self.settings, numbers[ours])
            made["dateTime"] = pa.array(times[ours], pa.timestamp("ms", "UTC"))
            fields = [field for field in schema if field.name != "seq"]
            structs = pa.StructArray.from_arrays([made[field.name] for field in fields], fields=fields)
            columns[stream] = structs.take(pa.array(np.cumsum(ours) - 1, mask=~ours))
        columns["dateTime"] = pa.array(times, pa.timestamp("ms", "UTC"))
        return Batch(pa.RecordBatch.from_pydict(columns), times * 1000)

    def earliest(self, number: int) -> int:
        return int(self.settings.times(np.array([number]))[0]) * 1000


def nexmark_events(
    *, events: int | None = None, rate: float | None = None, event_rate: float | None = None, name: str = "nexmark"
) -> NumberedSource:
    """Return the source of the events that `nexmark(stream, events=, rate=, event_rate=)` has for the three streams."""
    settings = NexmarkSettings(0, BASE_TIME, event_rate or rate or EVENT_RATE, 4, 2, 4)
    return NumberedSource(name, NexmarkEventRows(settings), rate, 0.001, events, 8192, created=False, clock=time.monotonic)
