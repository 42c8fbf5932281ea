"""What a query reads: NexMark's events from files or topics, or generated in the job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import evenflow as ef

from ...connectors.nexmark.numbering import StreamName
from ...connectors.nexmark.schemas import SCHEMAS
from ...connectors.nexmark.source import STREAMS
from ..kafka.topics import TAKES_ALL
from .data import CSV_SCHEMAS, EventFiles
from .events import Events, side_table
from .queries import QUERIES
from .topics import EventTopics

INPUTS = ("csv", "parquet", "generate", "kafka")


def read_events(flow: ef.Dataflow, events: EventFiles | EventTopics, form: str) -> Events:
    """The three streams, of which only those that the query asks for are read. `form`: one of `INPUTS`, of which "kafka" reads topics."""
    if isinstance(events, EventTopics):
        person, auction, bid = (_from_topic(flow, events, stream) for stream in STREAMS)
    else:
        person, auction, bid = (_reading(flow, events, form, stream) for stream in STREAMS)
    return Events(person, auction, bid, side_table())


def streams_of(query: str) -> list[StreamName]:
    """The streams that a query reads."""
    flow = ef.Dataflow(query)
    QUERIES[query](read_events(flow, EventFiles(Path(), 0), "generate"))
    return [stream for stream in STREAMS if any(node.name == stream for node in flow.graph)]


def _reading(flow: ef.Dataflow, files: EventFiles, form: str, stream: StreamName) -> Callable[[], ef.Stream]:
    if form == "generate":
        return lambda: flow.read(ef.nexmark(stream, events=files.events, rows_per_batch=65_536, name=stream))
    path = files.of(form, stream)
    if form == "parquet":
        return lambda: flow.read(ef.read_parquet(path, event_time="dateTime", name=stream))
    schema = CSV_SCHEMAS[stream]
    text = ef.read_csv(path, column_names=schema.names, schema=_types(stream), null_values=(), event_time="dateTime", name=stream)
    return lambda: flow.read(text).cast(_times(stream))


def _from_topic(flow: ef.Dataflow, events: EventTopics, stream: StreamName) -> Callable[[], ef.Stream]:
    records = ef.read_kafka(
        events.names[stream],
        bootstrap=events.bootstrap,
        until="now",
        schema=_types(stream),
        event_time="dateTime",
        options=TAKES_ALL,
        name=stream,
    )
    return lambda: flow.read(records).cast(_times(stream))


def _types(stream: StreamName) -> dict[str, str]:
    return {field.name: str(field.type) for field in CSV_SCHEMAS[stream]}


def _times(stream: StreamName) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in SCHEMAS[stream] if pa.types.is_timestamp(field.type)}
