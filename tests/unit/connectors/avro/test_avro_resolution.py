"""Reading rows that another schema wrote with a reader's schema."""

from __future__ import annotations

import io
import re
import socket
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from schema_registry import Registry, schema_registry

import evenflow as ef
from evenflow.connectors.avro import registry as avro_registry
from evenflow.connectors.avro.registry import SchemaRegistry, UnknownSchemaError, header_of
from evenflow.connectors.avro.schema import AvroSchema
from evenflow.connectors.kafka.values.avro_values import AvroValues
from evenflow.connectors.kafka.values.decoding import decoded


def record(**types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, **kind} for name, kind in types.items()]}


def logical(kind: str, what: str, **more: Any) -> dict[str, Any]:
    return {"type": {"type": kind, "logicalType": what, **more}}


def framed(number: int, schema: Any, row: Any) -> bytes:
    file = io.BytesIO()
    schemaless_writer(file, parse_schema(schema), row)
    return header_of(number) + file.getvalue()


@pytest.fixture
def registry():
    with schema_registry() as found:
        yield found


def reading(registry: Registry, reader: Any, values: list[bytes | None]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return the decoded rows, and why others were refused."""
    refused: dict[int, str] = {}
    decoder = AvroValues(AvroSchema(reader), SchemaRegistry(registry.url, "read_kafka"), [], "read_kafka")
    rows, _ = decoded(decoder, values, refused.__setitem__)
    return rows.to_pylist(), refused


def test_rows_of_several_schemas_are_read_into_one(registry):
    first, second = record(a={"type": "int"}), record(b={"type": "string"}, a={"type": "long"}, c={"type": "float"})
    third = record(a={"type": "int"}, b={"type": ["null", "string"]})
    reader = record(a={"type": "double"}, b={"type": ["null", "string"], "default": None}, d={"type": "int", "default": 9})
    numbers = [registry.add("t-value", schema) for schema in (first, second, third)]
    rows = [(first, {"a": 1}), (second, {"a": 2, "b": "x", "c": 0.5}), (third, {"a": 3, "b": None})]
    values = [framed(number, schema, row) for number, (schema, row) in zip(numbers, rows, strict=True)]
    found, refused = reading(registry, reader, [*values, None, *values])
    expected = [{"a": 1.0, "b": None, "d": 9}, {"a": 2.0, "b": "x", "d": 9}, {"a": 3.0, "b": None, "d": 9}]
    assert (found, refused) == ([*expected, {"a": None, "b": None, "d": None}, *expected], {})
    assert sorted(registry.asked) == [f"GET /schemas/ids/{number}" for number in numbers]


def test_a_field_has_another_name(registry):
    number = registry.add("t-value", record(old={"type": "int"}))
    value = framed(number, record(old={"type": "int"}), {"old": 4})
    assert reading(registry, record(new={"type": "int", "aliases": ["old"]}), [value])[0] == [{"new": 4}]


def test_a_schema_that_has_no_columns_may_have_written_values_that_have_some(registry):
    tree = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": ["null", "int", "string"]}, {"name": "next", "type": ["null", "R"]}],
    }
    number = registry.add("t-value", tree)
    values = [framed(number, tree, {"a": a, "next": {"a": 1, "next": None}}) for a in (None, 5, "x")]
    found, refused = reading(registry, record(a={"type": ["null", "int"]}), values)
    assert found == [{"a": None}, {"a": 5}]
    assert [*refused] == [2]


@pytest.mark.parametrize(
    ("writer", "reader", "row", "problem"),
    [
        (record(a={"type": "int"}), record(b={"type": "int"}), {"a": 1}, "doesn't match the reader's.*[Dd]efault"),
        (record(a={"type": "string"}), record(a={"type": "int"}), {"a": "x"}, "doesn't match the reader's"),
        (
            record(a=logical("long", "timestamp-micros")),
            record(a=logical("long", "timestamp-millis")),
            {"a": 1},
            "field `a` is timestamp-micros where it was written, and timestamp-millis in the schema of the reader",
        ),
        (
            record(a={"type": ["null", {"type": "array", "items": record(x=logical("int", "date")) | {"name": "I"}}]}),
            record(a={"type": ["null", {"type": "array", "items": record(x=logical("int", "time-millis")) | {"name": "I"}}]}),
            {"a": [{"x": 1}]},
            "field `a.items.x` is date where it was written",
        ),
        (
            record(a={"type": ["string", logical("int", "date")["type"]]}),
            record(a=logical("int", "time-millis")),
            {"a": 1},
            "field `a` is date where it was written",
        ),
        (
            record(a=logical("bytes", "decimal", precision=6, scale=2)),
            record(a=logical("bytes", "decimal", precision=6, scale=3)),
            {"a": b"\1"},
            r"is decimal\(6, 2\) where it was written, and decimal\(6, 3\)",
        ),
        (
            record(a={"type": "int"}),
            record(a={"type": "int"}, b={"type": "bytes", "default": "\u00ff"}),
            {"a": 1},
            "field `b` wasn't written, and its default has bytes",
        ),
    ],
)
def test_schemas_that_would_be_misread_are_refused(registry, writer, reader, row, problem):
    number = registry.add("t-value", writer)
    found, refused = reading(registry, reader, [framed(number, writer, row), None])
    assert found == [dict.fromkeys(AvroSchema(reader).columns.names)]
    assert len(refused) == 1
    assert re.search(problem, refused[0])


@pytest.mark.parametrize(
    ("kind", "wider", "value", "most"),
    [("long", "float", 2**24, "float"), ("int", "float", 2**24, "float"), ("long", "double", 2**53, "double")],
)
def test_whole_numbers_that_a_float_does_not_hold_are_refused(registry, kind, wider, value, most):
    def inner(of):
        return {"type": "map", "values": {"type": "array", "items": ["null", of]}}

    writer, reader = (record(old={"type": inner(of)}) for of in (kind, wider))
    reader["fields"][0] |= {"name": "new", "aliases": ["old"]}
    number = registry.add("t-value", writer)
    values = [framed(number, writer, {"old": {"k": [None, each]}}) for each in (value, value + 1, -value)]
    found, refused = reading(registry, reader, values)
    assert [dict(row["new"]) for row in found] == [{"k": [None, float(value)]}, {"k": [None, -float(value)]}]
    assert refused == {1: f"field `new.values.items` is {value + 1}, which a {most} can't hold; read it with a schema that says long"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "doesn't begin with a zero"),
        (b"\0\0\0", "doesn't begin with a zero"),
        (b'{"a": 1}', "doesn't begin with a zero"),
        (header_of(77) + b"\x02", "has no schema 77; is it the one that the producer asks"),
        (header_of(2) + b"\x02", "schema 2 .*can't be used: it is of the type PROTOBUF"),
        (header_of(1), "its schema didn't write it"),
        (header_of(1) + b"\x02\x02", "its schema wrote 6 of its 7 bytes"),
    ],
)
def test_values_that_can_not_be_decoded(registry, value, problem):
    schema = record(a={"type": "int"})
    assert registry.add("t-value", schema) == 1
    registry.add("other", 'syntax = "proto3";', schemaType="PROTOBUF")
    good = framed(1, schema, {"a": 1})
    found, refused = reading(registry, schema, [good, value, good])
    assert found == [{"a": 1}] * 2
    assert [*refused] == [1]
    assert re.search(problem, refused[1])


def test_schemas_that_refer_to_others(registry):
    inner = {"type": "record", "name": "Inner", "namespace": "x", "fields": [{"name": "at", **logical("int", "date")}]}
    middle = {"type": "record", "name": "Middle", "namespace": "x", "fields": [{"name": "inner", "type": "Inner"}]}
    outer = {"type": "record", "name": "R", "fields": [{"name": "middle", "type": "x.Middle"}, {"name": "inner", "type": "x.Inner"}]}
    registry.add("inner", inner)
    registry.add("middle", middle, references=[{"name": "x.Inner", "subject": "inner", "version": 1}])
    references = [{"name": f"x.{name.title()}", "subject": name, "version": 1} for name in ("middle", "inner")]
    number = registry.add("t-value", outer, references=references)
    asked = SchemaRegistry(registry.url, "read_kafka")
    names: dict[str, Any] = {}
    parsed = [parse_schema(schema, names) for schema in (inner, middle, outer)][-1]
    file = io.BytesIO()
    schemaless_writer(file, parsed, {"middle": {"inner": {"at": 1}}, "inner": {"at": 2}})
    _, newest = asked.newest("t-value")
    decoder = AvroValues(newest, asked, [], "read_kafka")
    rows, _ = decoder.decode([header_of(number) + file.getvalue()])
    assert str(rows.to_pylist()) == (
        "[{'middle': {'inner': {'at': datetime.date(1970, 1, 2)}}, 'inner': {'at': datetime.date(1970, 1, 3)}}]"
    )


def test_a_registry_that_is_gone():
    with schema_registry() as registry:
        url = registry.url
    with pytest.raises(ef.ConnectorError, match=rf"the schema registry {url} doesn't answer: .*; check the address"):
        SchemaRegistry(url, "read_kafka").schema(1)


def test_a_registry_that_never_answers(monkeypatch):
    monkeypatch.setattr(avro_registry, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(ef.ConnectorError, match=r"doesn't answer: .*timed out"):
            SchemaRegistry(url, "read_kafka").newest("t-value")


def test_an_address_of_something_else(registry):
    with pytest.raises(ef.ConnectorError, match=r"answers with 404: .*not here"):
        SchemaRegistry(f"{registry.url}/elsewhere/", "read_kafka").schema(1)


def test_user_and_password_are_in_the_address_and_in_no_error():
    with schema_registry(login="me:s/crt") as registry:
        host = registry.url.removeprefix("http://")
        number = registry.add("t-value", '"int"')
        assert SchemaRegistry(f"http://me:s%2Fcrt@{host}", "read_kafka").schema(number).columns.names == ["value"]
        with pytest.raises(ef.ConnectorError, match=f"{registry.url} refuses the user or the password; give them in the address") as raised:
            SchemaRegistry(f"http://me:wrong@{host}", "read_kafka").schema(number)
        assert "wrong" not in str(raised.value)


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://a", "http://", "", 5])
def test_addresses_that_are_refused(url):
    with pytest.raises(ef.FlowError, match="registry must be the address of a schema registry"):
        SchemaRegistry(url, "read_kafka")


def test_subjects_without_a_schema_and_schemas_that_are_refused(registry):
    asked = SchemaRegistry(registry.url, "write_kafka")
    with pytest.raises(ef.ConnectorError, match="has no subject `t-value`; register a schema under it, or give one in schema="):
        asked.newest("t-value")
    registry.refused.add("t-value")
    with pytest.raises(ef.ConnectorError, match=r"refuses the schema: .*incompatible.*change schema="):
        asked.register("t-value", AvroSchema('"int"'))
    registry.add("odd", '["int", "string"]')
    with pytest.raises(ef.ConnectorError, match="has a schema under `odd` that can't be used: it is a union of int, string"):
        asked.newest("odd")
    with pytest.raises(UnknownSchemaError, match="has no schema 99"):
        asked.schema(99)
