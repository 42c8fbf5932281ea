"""Debezium's change events in JSON, with and without the wrapper of Kafka Connect's schemas."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from .change_events import ChangeEvents, EventReader
from .decoding import JsonValues, UndecodableError, Values
from .envelope_schema import columns_of_event


class JsonEvents(EventReader):
    """A reader of events in JSON. `read`: the types in which JSON has the columns, if they aren't those of the columns."""

    def __init__(self, read: pa.Schema | None = None, key: tuple[str, ...] = ()) -> None:
        self._read, self._key = read, key
        if read is None:
            return
        row, own = pa.struct(list(read)), pa.struct([read.field(name) for name in key])
        event = [pa.field("op", pa.string()), pa.field("before", own), pa.field("after", row)]
        self._events = JsonValues(pa.schema([pa.field("payload", pa.struct(event)), *event]))
        self._keys = JsonValues(pa.schema([pa.field("payload", own), *own]))

    def inferred(self, sample: Callable[[], Values]) -> tuple[pa.Schema, EventReader]:
        for value in reversed(sample()):
            found = None if value is None else columns_of_event(value)
            if found is not None:
                return found.columns, JsonEvents(found.read)
        raise UndecodableError("no event has a schema (the converter's schemas.enable)")

    def reading(self, columns: pa.Schema, key: tuple[str, ...]) -> EventReader:
        return JsonEvents(columns if self._read is None else self._read, key)

    def events(self, values: Values) -> ChangeEvents:
        events, _ = self._events.decode(values)
        return ChangeEvents(**{name: _either(events, name) for name in ("op", "after", "before")})

    def keys(self, values: Values) -> pa.StructArray:
        rows, _ = self._keys.decode(values)
        return pa.StructArray.from_arrays([_either(rows, name) for name in self._key], list(self._key))


def _either(rows: pa.RecordBatch, name: str) -> pa.Array:
    """Return a field of the payload of those that have the wrapper, and of the others themselves."""
    payload, outside = rows.column("payload"), rows.column(name)
    if payload.null_count == len(payload):
        return outside
    inside = pc.struct_field(payload, name)
    return pc.if_else(payload.is_valid(), inside, outside) if payload.null_count else inside
