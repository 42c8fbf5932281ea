"""The streams of the price search machine as topics of Kafka, whose records are JSON objects with the product as key.

Times are whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import evenflow as ef

from ...engine.source import Source
from ..kafka.topics import TAKES_ALL, produce, topics
from .source import PRODUCTS, STREAMS, TURNS_PER_SECOND, StreamName, VisitRows, all_rows


@dataclass(frozen=True, slots=True)
class VisitTopics:
    """On the broker at `bootstrap`; `names` has a topic for each stream."""

    bootstrap: str
    names: dict[StreamName, str]

    def source(self, stream: StreamName) -> Source:
        """What is in a topic when the job begins."""
        types = {field.name: str(field.type) for field in schema_in_topic(stream)}
        return ef.read_kafka(
            self.names[stream], bootstrap=self.bootstrap, until="now", schema=types, event_time="timestamp", options=TAKES_ALL, name=stream
        )  # fmt: skip


@contextmanager
def visit_topics(bootstrap: str, say: Callable[[str], None], *, turns: int, **arguments: Any) -> Iterator[VisitTopics]:
    """Topics that are filled, and deleted when the block ends; arguments as of `visits`. `say` hears how far it is."""
    with topics(bootstrap, STREAMS) as names:
        made = VisitTopics(bootstrap, {stream: names[stream] for stream in STREAMS})
        for stream, topic in made.names.items():
            schema = schema_in_topic(stream)
            rows = produce(bootstrap, topic, (batch.cast(schema) for batch in all_rows(stream, turns, **arguments)), key="product")
            say(f"{stream}: {rows:,} rows in topic {topic}")
        yield made


def schema_in_topic(stream: StreamName) -> pa.Schema:
    """The columns of the records."""
    return pa.schema([(field.name, pa.int64() if pa.types.is_timestamp(field.type) else field.type) for field in _schema(stream)])


def times_of(stream: StreamName) -> dict[str, pa.DataType]:
    """The columns that are times in the stream."""
    return {field.name: field.type for field in _schema(stream) if pa.types.is_timestamp(field.type)}


def _schema(stream: StreamName) -> pa.Schema:
    return VisitRows(stream, TURNS_PER_SECOND, PRODUCTS, 0).batch(np.zeros(1, np.int64)).rows.schema
