"""Debezium's change events of a table in Avro, as Confluent's converter writes them, with their schemas in a registry of the tests."""

from __future__ import annotations

import io
import json
from typing import Any

from fastavro import parse_schema, schemaless_writer

from evenflow.connectors.avro.registry import header_of


def connect(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": meaning, **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def optional(name: str, kind: Any) -> dict[str, Any]:
    return field(name, ["null", kind], default=None)


def envelope(fields: Any) -> dict[str, Any]:
    """Return the schema of the events of a table, in which `after` names the record of `before`."""
    row = {"type": "record", "name": "Value", "fields": fields, "connect.name": "shop.public.orders.Value"}
    source = {
        "type": "record",
        "name": "Source",
        "namespace": "io.debezium.connector.postgresql",
        "fields": [field("lsn", ["null", "long"])],
    }
    block = {"type": "record", "name": "block", "namespace": "event", "fields": [field("id", "string"), field("total_order", "long")]}
    return {
        "type": "record", "name": "Envelope", "namespace": "shop.public.orders", "connect.name": "shop.public.orders.Envelope",
        "fields": [
            optional("before", row), optional("after", "Value"), field("source", source), optional("transaction", block),
            field("op", "string"), optional("ts_ms", "long"),
        ],
    }  # fmt: skip


KEY = {"type": "record", "name": "Key", "namespace": "shop.public.orders", "fields": [field("id", "int")]}


class TableEvents:
    """An encoder of the events and the keys of a table, which registers their schemas. Times in rows are numbers.

    `fields`: the columns of the table, unless an event has others.
    """

    def __init__(self, registry: Any, topic: str, fields: Any) -> None:
        self.registry, self._topic, self._fields = registry, topic, fields
        self._parsed: dict[str, tuple[bytes, Any]] = {}

    def event(self, op: str, after: Any = None, before: Any = None, *, fields: Any = None) -> bytes:
        value = {"op": op, "before": before, "after": after, "source": {"lsn": 7}, "transaction": {"id": "1", "total_order": 1}, "ts_ms": 5}
        return self._encoded("value", envelope(self._fields if fields is None else fields), value)

    def key(self, number: int) -> bytes:
        return self._encoded("key", KEY, {"id": number})

    def _encoded(self, part: str, schema: Any, datum: Any) -> bytes:
        text = json.dumps(schema)
        if text not in self._parsed:
            self._parsed[text] = header_of(self.registry.add(f"{self._topic}-{part}", text)), parse_schema(schema)
        header, parsed = self._parsed[text]
        file = io.BytesIO()
        schemaless_writer(file, parsed, datum)
        return header + file.getvalue()
