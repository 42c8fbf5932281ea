"""Debezium's change events, as its PostgreSQL and MySQL connectors write them, become rows of the table and deletions."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from evenflow.connectors.kafka.values.debezium import DebeziumValues
from evenflow.connectors.kafka.values.debezium_json import JsonEvents
from evenflow.connectors.kafka.values.decoding import UndecodableError, decoded

SOURCE = {"version": "2.7.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": 1559033904863, "snapshot": "false", "lsn": 24023128}
COLUMNS = pa.schema({"id": pa.int64(), "email": pa.string(), "score": pa.float32()})
VALUES = DebeziumValues(COLUMNS, ("id",), JsonEvents())
FIELDS = [
    {"type": "int32", "optional": False, "field": "id"},
    {"type": "string", "optional": True, "field": "email"},
    {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "version": 1, "field": "born"},
    {"type": "int64", "optional": True, "name": "io.debezium.time.MicroTimestamp", "version": 1, "field": "seen"},
    {"type": "string", "optional": True, "name": "io.debezium.time.ZonedTimestamp", "version": 1, "field": "paid"},
]


def event(op: str, after: Any = None, before: Any = None, *, schema: Any = None, wrapped: bool = False) -> bytes:
    envelope = {"before": before, "after": after, "source": SOURCE, "op": op, "ts_ms": 1559033904863, "transaction": None}
    return json.dumps({"schema": schema, "payload": envelope} if wrapped or schema else envelope).encode()


def key(number: int, *, wrapped: bool = False) -> bytes:
    own = {"id": number}
    return json.dumps({"schema": {"type": "struct", "optional": False}, "payload": own} if wrapped else own).encode()


def envelope_schema(fields: Any) -> Any:
    rows = [{"type": "struct", "fields": fields, "optional": True, "name": "shop.Value", "field": field} for field in ("before", "after")]
    return {"type": "struct", "fields": [*rows, {"type": "string", "optional": False, "field": "op"}], "name": "shop.Envelope"}


def rows_of(*records: Any) -> list[dict[str, Any]]:
    return VALUES.decode(records)[0].to_pylist()


def row(number: int, email: str | None = None, score: float | None = None, *, deleted: bool = False) -> dict[str, Any]:
    return {"id": number, "email": email, "score": score, "__deleted": deleted}


@pytest.mark.parametrize("wrapped", [False, True])
def test_created_read_and_updated_rows_are_there_and_deleted_ones_are_not(wrapped):
    records = [
        (key(1, wrapped=wrapped), event("c", {"id": 1, "email": "a@x", "score": 0.5}, wrapped=wrapped)),
        (key(2, wrapped=wrapped), event("r", {"id": 2, "email": None, "score": None}, wrapped=wrapped)),
        (key(1, wrapped=wrapped), event("u", {"id": 1, "email": "b@x", "score": 2}, {"id": 1, "email": "a@x"}, wrapped=wrapped)),
        (key(2, wrapped=wrapped), event("d", None, {"id": 2, "email": None}, wrapped=wrapped)),
        (key(2, wrapped=wrapped), None),
    ]
    assert rows_of(*records) == [row(1, "a@x", 0.5), row(2), row(1, "b@x", 2.0), row(2, deleted=True), row(2, deleted=True)]


def test_events_with_and_without_the_wrapper_can_be_mixed():
    assert rows_of((None, event("c", {"id": 1}, wrapped=True)), (None, event("c", {"id": 2}))) == [row(1), row(2)]


def test_key_of_a_deleted_row_is_that_of_the_record_if_before_is_null():
    assert rows_of((key(4), event("d")), (key(5, wrapped=True), event("d", wrapped=True)), (None, event("d", None, {"id": 6}))) == [
        row(4, deleted=True), row(5, deleted=True), row(6, deleted=True)
    ]  # fmt: skip


def test_columns_that_the_schema_does_not_name_are_ignored():
    assert rows_of((key(1), event("c", {"id": 1, "more": {"a": [1]}}))) == [row(1)]


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ((key(1), event("t")), "truncated"),
        ((key(1), event("m")), "op='m' is none of"),
        ((key(1), b'{"id": 1, "email": "a@x"}'), "no change event"),
        ((key(1), b"[1]"), "no JSON object"),
        ((key(1), event("u")), "`after` is null"),
        ((key(1), event("u", {"email": "a@x"})), "it has no `id`, which is in key="),
        ((key(1), event("c", {"id": 1, "score": 1e300})), "too large for float"),
        ((key(1), event("u", {"id": 1, "email": "__debezium_unavailable_value"})), "REPLICA IDENTITY FULL"),
        ((key(1), event("u", {"id": 1, "email": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="})), "REPLICA IDENTITY FULL"),
        ((None, event("d")), "neither a key nor a `before`"),
        ((None, None), "neither a key nor a `before`"),
        ((b"Struct{id=1}", None), "its key can't be decoded"),
        ((b'{"other": 1}', None), "it has no `id`"),
    ],
)
def test_event_that_is_no_change_of_a_row_is_refused_and_the_others_are_read(record, problem):
    refused: list[tuple[int, str]] = []
    good = (key(3), event("c", {"id": 3}))
    rows, counts = decoded(VALUES, [good, record, good], lambda *it: refused.append(it))
    assert rows.to_pylist() == [row(3), row(3)]
    assert counts is not None
    assert counts.tolist() == [1, 0, 1]
    assert refused[0][0] == 1
    assert problem in refused[0][1]


def test_columns_come_from_the_schema_of_the_events():
    after = {"id": 1, "email": "a", "born": 3, "seen": 1_500_000, "paid": "2024-01-01T12:00:00.5Z"}
    made = event("c", after, schema=envelope_schema(FIELDS))
    values = DebeziumValues(None, ("id",), JsonEvents()).inferred(lambda: [None, made, None])
    assert values.schema is not None
    assert values.schema.names == ["id", "email", "born", "seen", "paid", "__deleted"]
    kinds = [str(kind) for kind in values.schema.types]
    assert kinds == ["int32", "string", "date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]", "bool"]
    texts = [str(value) for value in values.decode([(key(1), made)])[0].to_pylist()[0].values()]
    assert texts == ["1", "a", "1970-01-04", "1970-01-01 00:00:01.500000", "2024-01-01 12:00:00.500000+00:00", "False"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([*FIELDS, {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "field": "price"}], "decimal.handling.mode"),
        ([*FIELDS, {"type": "array", "items": {"type": "int32"}, "field": "tags"}], "`tags` is 'array'"),
        ([*FIELDS, {"type": "int32", "field": "__op"}], "column `__op`: names that begin with __ are taken"),
        (FIELDS[1:], "no column `id`, which is in key="),
        (None, "schemas.enable"),
    ],
)
def test_schema_of_the_events_that_makes_no_columns_is_refused(fields, problem):
    value = event("c", {"id": 1}, schema=None if fields is None else envelope_schema(fields))
    with pytest.raises(UndecodableError, match=problem):
        DebeziumValues(None, ("id",), JsonEvents()).inferred(lambda: [value])
