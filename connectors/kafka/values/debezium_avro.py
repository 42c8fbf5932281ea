"""Debezium's change events in Avro, with the schemas that wrote them in a registry.

Each event is read with the schema that wrote it, and its columns are converted by name: Kafka Connect's names of types, which Avro's
own resolution ignores, say what a number means in that event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...avro.registry import SchemaRegistry, number_of
from ...avro.schema import AvroSchema
from .avro_columns import Fields, column_of, columns_of, default_of, fields_of, read_type
from .avro_writers import WriterSchemas, datum
from .change_events import ChangeEvents, EventReader
from .decoding import UndecodableError, Values

_TOMBSTONE = -1
"""The number of the schema of records without a value."""


@dataclass(frozen=True, slots=True)
class _Writer:
    """A schema of events or of keys for fastavro, and the types in which Arrow reads the columns that it has."""

    plain: Any
    types: Mapping[str, pa.DataType]


class AvroEvents(EventReader):
    """A reader of events in Avro. `defaults`: one value for each column that events may not have yet."""

    def __init__(
        self,
        registry: SchemaRegistry,
        topic: str,
        columns: pa.Schema | None = None,
        key: tuple[str, ...] = (),
        defaults: Mapping[str, pa.Array] | None = None,
    ) -> None:
        self._registry, self._topic, self._defaults = registry, topic, defaults or {}
        self._columns = pa.schema([]) if columns is None else columns
        self._own = pa.schema([self._columns.field(name) for name in key])
        self._of_events, self._of_keys = WriterSchemas[_Writer](registry), WriterSchemas[_Writer](registry)

    def inferred(self, sample: Callable[[], Values]) -> tuple[pa.Schema, EventReader]:
        subject = f"{self._topic}-value"
        _, newest = self._registry.newest(subject)
        try:
            fields = _fields_of_rows(newest)
            columns = columns_of(fields)
            defaults = {name: default_of(field) for name, field in fields.items() if field.get("default") is not None}
        except UndecodableError as error:
            raise UndecodableError(f"the newest schema of `{subject}`: {error}") from error
        return columns, AvroEvents(self._registry, self._topic, defaults=defaults)

    def reading(self, columns: pa.Schema, key: tuple[str, ...]) -> EventReader:
        return AvroEvents(self._registry, self._topic, columns, key, self._defaults)

    def events(self, values: Values) -> ChangeEvents:
        places = _by_schema(values)
        parts = [self._part([values[place] for place in of]) for of in places]
        return ChangeEvents(*(_in_order([getattr(part, name) for part in parts], places) for name in ("op", "after", "before")))

    def keys(self, values: Values) -> pa.StructArray:
        places = _by_schema(values)
        parts = list[pa.Array]()
        for of in places:
            mine = [value for place in of if (value := values[place]) is not None]
            writer = self._of_keys.of(mine[0], self._key_writer)
            parts.append(self._rows([datum(value, writer.plain) for value in mine], writer, self._own))
        return _in_order(parts, places)

    def _part(self, values: Values) -> ChangeEvents:
        """Read events of one schema, or tombstones."""
        if values[0] is None:
            row, own = (pa.nulls(len(values), pa.struct(list(columns))) for columns in (self._columns, self._own))
            return ChangeEvents(pa.nulls(len(values), pa.string()), row, own)
        writer = self._of_events.of(values[0], self._event_writer)
        events = [datum(value, writer.plain) for value in values if value is not None]
        return ChangeEvents(
            column_of([event["op"] for event in events], pa.string(), pa.field("op", pa.string())),
            self._rows([event["after"] for event in events], writer, self._columns),
            self._rows([event.get("before") for event in events], writer, self._own),
        )

    def _rows(self, rows: Sequence[Mapping[str, Any] | None], writer: _Writer, columns: pa.Schema) -> pa.StructArray:
        """Convert records, and None for none, to structs of these columns."""
        absent = np.array([row is None for row in rows], np.bool_)
        arrays = list[pa.Array]()
        for field in columns:
            name = field.name
            if name in writer.types:
                arrays.append(column_of([None if row is None else row[name] for row in rows], writer.types[name], field))
            elif name in self._defaults:
                arrays.append(self._defaults[name].take(pa.array(np.zeros(len(rows), np.int64), mask=absent)))
            else:
                arrays.append(pa.nulls(len(rows), field.type))
        return pa.StructArray.from_arrays(arrays, fields=list(columns), mask=pa.array(absent))

    def _event_writer(self, _number: int, schema: AvroSchema) -> _Writer:
        return _writer(schema, _fields_of_rows(schema), self._columns)

    def _key_writer(self, _number: int, schema: AvroSchema) -> _Writer:
        fields = fields_of(schema.expanded)
        if fields is None:
            raise UndecodableError("its schema is no record")
        return _writer(schema, fields, self._own)


def _writer(schema: AvroSchema, fields: Fields, columns: pa.Schema) -> _Writer:
    return _Writer(schema.plain, {name: read_type(fields[name]) for name in columns.names if name in fields})


def _fields_of_rows(schema: AvroSchema) -> Fields:
    """Return the fields of the rows in events of this schema. Raises UndecodableError if it has none."""
    envelope = fields_of(schema.expanded) or {}
    row = fields_of(envelope["after"]["type"]) if "op" in envelope and "after" in envelope else None
    if row is None:
        raise UndecodableError('it makes no change events of Debezium, with `op` and `after`; rows without the envelope are format="avro"')
    return row


def _by_schema(values: Values) -> list[list[int]]:
    """Return the places of the values of each schema, and those of the tombstones."""
    places: dict[int | None, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(_TOMBSTONE if value is None else number_of(value), []).append(place)
    return list(places.values())


def _in_order(parts: Sequence[pa.Array], places: Sequence[Sequence[int]]) -> pa.Array:
    """Return the elements of all parts at their places."""
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places))))
