"""NexMark's events as topics of Kafka: one each for people, auctions and bids, whose records are JSON objects.

Times are whole milliseconds, as in the CSV files. A partition has every other piece of events, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from ...connectors.nexmark.numbering import Numbering, StreamName
from ...connectors.nexmark.source import STREAMS
from ..kafka.topics import produce, topics
from .data import BLOCK, CSV_SCHEMAS, pieces


@dataclass(frozen=True, slots=True)
class EventTopics:
    """The topics of `events` of all streams on the broker at `bootstrap`; `names` has a topic for each stream."""

    bootstrap: str
    names: dict[StreamName, str]
    events: int

    def rows(self, stream: StreamName) -> int:
        """How many rows a stream has."""
        return Numbering(stream).rows_before(self.events)


@contextmanager
def event_topics(bootstrap: str, events: int, say: Callable[[str], None]) -> Iterator[EventTopics]:
    """Topics that are filled, and deleted when the block ends; `say` hears how far it is."""
    with topics(bootstrap, STREAMS) as names:
        made = EventTopics(bootstrap, {stream: names[stream] for stream in STREAMS}, events)
        for stream, topic in made.names.items():
            rows = produce(bootstrap, topic, _batches(stream, made.rows(stream)))
            say(f"{stream}: {rows:,} rows in topic {topic}")
        yield made


def _batches(stream: StreamName, rows: int) -> Iterator[pa.RecordBatch]:
    for piece in pieces(stream, 0, rows):
        whole = piece.cast(CSV_SCHEMAS[stream])
        yield from (whole.slice(first, BLOCK) for first in range(0, whole.num_rows, BLOCK))
