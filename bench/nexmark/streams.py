"""The inputs of a query: NexMark's events from files, or generated in the job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import evenflow as ef

from ...connectors.nexmark.numbering import StreamName
from ...connectors.nexmark.schemas import SCHEMAS
from ...connectors.nexmark.source import STREAMS
from .data import CSV_SCHEMAS, EventFiles
from .queries import QUERIES
from .queries.events import Events, side_table

INPUTS = ("csv", "parquet", "generate")


def read_events(flow: ef.Dataflow, events: EventFiles, form: str) -> Events:
    """Return the three streams; the flow reads only those that the query uses. `form`: one of `INPUTS`."""
    person, auction, bid = (_reading(flow, events, form, stream) for stream in STREAMS)
    return Events(person, auction, bid, side_table())


def streams_of(query: str) -> list[StreamName]:
    """Return the streams that a query reads."""
    flow = ef.Dataflow(query)
    QUERIES[query](read_events(flow, EventFiles(Path(), 0), "generate"))
    return [stream for stream in STREAMS if any(node.name == stream for node in flow.graph)]


def _reading(flow: ef.Dataflow, files: EventFiles, form: str, stream: StreamName) -> Callable[[], ef.Stream]:
    if form == "generate":
        return lambda: flow.read(ef.nexmark(stream, events=files.events, rows_per_batch=65_536, name=stream))
    path = files.of(form, stream)
    if form == "parquet":
        return lambda: flow.read(ef.read_parquet(path, event_time="dateTime", name=stream))
    types = {field.name: str(field.type) for field in CSV_SCHEMAS[stream]}
    times = {field.name: field.type for field in SCHEMAS[stream] if pa.types.is_timestamp(field.type)}
    text = ef.read_csv(path, column_names=list(types), schema=types, null_values=(), event_time="dateTime", name=stream)
    return lambda: flow.read(text).cast(times)
