"""Conversion of Avro values to columns and back, with fastavro as the oracle."""

from __future__ import annotations

import io
import re
import string
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.actors.processes.packed_call import pack_call, unpack_call
from evenflow.connectors.avro.schema import AvroSchema, SchemaError
from evenflow.connectors.kafka.values.avro_rows import AvroRows
from evenflow.connectors.kafka.values.avro_values import AvroValues
from evenflow.connectors.kafka.values.decoding import UndecodableError, decoded
from evenflow.engine.columns import Columns


def written(schema: Any, value: Any) -> bytes:
    file = io.BytesIO()
    schemaless_writer(file, parse_schema(schema), value)
    return file.getvalue()


def read(schema: Any, value: bytes) -> Any:
    return schemaless_reader(io.BytesIO(value), parse_schema(schema), None)


def rows_of(schema: Any, values: list[bytes | None]) -> pa.RecordBatch:
    return AvroValues(AvroSchema(schema), None, [], "read_kafka").decode(values)[0]


def values_of(schema: Any, rows: pa.RecordBatch) -> list[bytes]:
    found: list[bytes] = AvroRows(AvroSchema(schema), None, "write_kafka").values(rows).to_pylist()
    return found


def record(*types: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{place}", "type": kind} for place, kind in enumerate(types)]}


def logical(kind: str, what: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": what, **more}


COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
NOON = datetime(2026, 7, 1, 12, 30, 15, 123000, UTC)

TYPES: list[tuple[Any, pa.DataType, Any]] = [
    ("boolean", pa.bool_(), True),
    ("int", pa.int32(), -(2**31)),
    ("long", pa.int64(), 2**63 - 1),
    ("float", pa.float32(), 0.5),
    ("double", pa.float64(), -0.1),
    ("bytes", pa.binary(), b"\x00\xff"),
    ("string", pa.string(), "süß"),
    ("null", pa.null(), None),
    (["null", "long"], pa.int64(), None),
    (["long", "null"], pa.int64(), 7),
    (["string"], pa.string(), "x"),
    ({"type": "fixed", "name": "F", "size": 3}, pa.binary(3), b"abc"),
    (COLOUR, pa.string(), "GREEN"),
    ({"type": "array", "items": ["null", "int"]}, pa.list_(pa.int32()), [1, None, 3]),
    ({"type": "map", "values": "double"}, pa.map_(pa.string(), pa.float64()), {"a": 0.5, "b": 1.0}),
    (record("int", ["null", "string"], name="Inner"), pa.struct([("f0", pa.int32()), ("f1", pa.string())]), {"f0": 1, "f1": None}),
    (["null", record("int", name="Inner")], pa.struct([("f0", pa.int32())]), None),
    (logical("int", "date"), pa.date32(), date(1969, 12, 31)),
    (logical("int", "time-millis"), pa.time32("ms"), time(23, 59, 59, 999000)),
    (logical("long", "time-micros"), pa.time64("us"), time(1, 2, 3, 4)),
    (logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC"), NOON),
    (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC"), NOON.replace(microsecond=1)),
    (logical("long", "local-timestamp-millis"), pa.timestamp("ms"), NOON.replace(tzinfo=None)),
    (logical("long", "local-timestamp-micros"), pa.timestamp("us"), NOON.replace(tzinfo=None)),
    (["null", logical("long", "timestamp-millis")], pa.timestamp("ms", "UTC"), NOON),
    ({"type": "array", "items": logical("long", "timestamp-micros")}, pa.list_(pa.timestamp("us", "UTC")), [NOON]),
    ({"type": "map", "values": logical("int", "date")}, pa.map_(pa.string(), pa.date32()), {"a": date(2026, 1, 1)}),
    (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2), Decimal("-1234567.89")),
    (["null", logical("bytes", "decimal", precision=50, scale=3)], pa.decimal256(50, 3), Decimal("1.500")),
    (logical("fixed", "decimal", name="D", size=4, precision=9, scale=1), pa.decimal128(9, 1), Decimal("0.5")),
    (logical("string", "unknown"), pa.string(), "as it is"),
]


@pytest.mark.parametrize(("kind", "expected", "value"), TYPES, ids=[str(kind)[:60] for kind, _, _ in TYPES])
def test_each_type_has_a_column_and_its_values_come_back(kind, expected, value):
    schema = record(kind, "int")
    datum = written(schema, {"f0": value, "f1": 1})

    rows = rows_of(schema, [datum, datum])

    assert rows.schema.field("f0").type == expected
    assert rows.column("f0").to_pylist(maps_as_pydicts="strict") == [value, value]
    assert values_of(schema, rows) == [datum, datum]
    assert read(schema, datum) == {"f0": value, "f1": 1}


def test_a_uuid_is_text():
    schema, text = record(logical("string", "uuid")), "6f1cdd4e-7d7e-4d5b-8f7b-b5d1a4f0d0aa"
    datum = written(schema, {"f0": text})
    assert rows_of(schema, [datum]).to_pylist() == [{"f0": text}]
    assert values_of(schema, pa.record_batch({"f0": [text]})) == [datum]


def test_nanoseconds_and_years_that_python_has_not():
    schema = record(logical("long", "timestamp-nanos"), logical("long", "timestamp-millis"))
    plain = record("long", "long")
    datum = written(plain, {"f0": 1, "f1": 400_000_000_000_000})
    rows = rows_of(schema, [datum])
    assert rows.schema.types == [pa.timestamp("ns", "UTC"), pa.timestamp("ms", "UTC")]
    assert [column.cast("int64").to_pylist() for column in rows.columns] == [[1], [400_000_000_000_000]]
    assert values_of(schema, rows) == [datum]


def test_a_schema_that_is_no_record_is_the_column_value():
    rows = rows_of('"long"', [written("long", 5), None])
    assert rows.to_pydict() == {"value": [5, None]}
    assert values_of('"long"', pa.record_batch({"value": [5]})) == [written("long", 5)]


def test_decoders_and_encoders_are_sent_to_workers():
    schema = AvroSchema(record("int", logical("int", "date")))
    (reading, writing) = unpack_call(pack_call(AvroValues(schema, None, [], "r"), AvroRows(schema, None, "w")))
    rows = pa.record_batch({"f0": pa.array([1], pa.int32()), "f1": pa.array([date(2026, 1, 1)])})
    assert reading.decode(writing.values(rows).to_pylist())[0] == rows


def test_a_tombstone_is_a_row_of_nulls():
    assert rows_of(record("int", "string"), [None]).to_pylist() == [{"f0": None, "f1": None}]


_NAMES = st.integers(0, 10**9).map(lambda number: f"N{number}")
_LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=9)),
    ("string", st.text(string.printable + "üß\u2028", max_size=9)),
    (logical("int", "date"), st.dates()),
    (logical("int", "time-millis"), st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))),
    (logical("long", "time-micros"), st.times()),
    (logical("long", "timestamp-micros"), st.datetimes(timezones=st.just(UTC))),
    (logical("bytes", "decimal", precision=12, scale=4), st.decimals(-(10**7), 10**7, places=4)),
]


@st.composite
def kinds(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw an Avro type and a strategy for its values."""
    shape = draw(st.sampled_from(["leaf", "leaf", "null", "array", "map", "record"] if depth else ["leaf"]))
    if shape == "record":
        inner = [draw(kinds(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        values = st.fixed_dictionaries({f"f{place}": each for place, (_, each) in enumerate(inner)})
        return record(*(kind for kind, _ in inner), name=draw(_NAMES)), values
    kind, values = draw(st.sampled_from(_LEAVES)) if shape == "leaf" else draw(kinds(depth - 1))
    if shape == "array":
        return {"type": "array", "items": kind}, st.lists(values, max_size=3)
    if shape == "map":
        return {"type": "map", "values": kind}, st.dictionaries(st.text(max_size=3), values, max_size=3)
    if shape == "null" and not isinstance(kind, list):
        return ["null", kind], st.none() | values
    return kind, values


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_values_of_any_schema_come_back(data):
    inner = [data.draw(kinds()) for _ in range(data.draw(st.integers(1, 4)))]
    schema = record(*(kind for kind, _ in inner))
    row = st.fixed_dictionaries({f"f{place}": values for place, (_, values) in enumerate(inner)})
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    try:
        parse_schema(schema)
    except Exception:  # noqa: BLE001 -- two types got the same name
        return
    values = [written(schema, each) for each in rows]

    columns = rows_of(schema, values)

    assert columns.to_pylist(maps_as_pydicts="strict") == rows
    sliced = values_of(schema, pa.concat_batches([columns, columns]).slice(1, len(rows)))
    assert sliced == [*values[1:], values[0]]


def test_records_that_are_cut_short_or_too_long_or_of_something_else_are_found_among_others():
    schema = record("long", "string")
    good = written(schema, {"f0": 1, "f1": "x"})
    bad = [b"", good[:-1], good + b"\0", b"\x80" * 3, b"\x02\x05x", b"\x02\x02\xff"]
    refused: list[int] = []
    decoder = AvroValues(AvroSchema(schema), None, [], "read_kafka")
    rows, counts = decoded(decoder, [good, *bad, good], lambda place, problem: refused.append(place))
    assert refused == [1, 2, 3, 4, 5, 6]
    assert counts.tolist() == [1, 0, 0, 0, 0, 0, 0, 1]
    assert rows.to_pylist() == [{"f0": 1, "f1": "x"}] * 2


DAMAGED = record(
    "long",
    ["null", "string"],
    {"type": "array", "items": ["null", "double"]},
    {"type": "map", "values": "bytes"},
    COLOUR,
    logical("bytes", "decimal", precision=9, scale=2),
    logical("int", "date"),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=40) | st.integers(0, 60), min_size=1, max_size=4))
def test_any_bytes_are_rows_or_refused(pieces):
    row = {"f0": 1, "f1": "x", "f2": [None, 0.5], "f3": {"k": b"v"}, "f4": "RED", "f5": Decimal("1.25"), "f6": date(2026, 1, 1)}
    good = written(DAMAGED, row)
    values = [good[:piece] + b"\xff" + good[piece + 1 :] if isinstance(piece, int) else piece for piece in pieces]
    refused: list[int] = []
    decoder = AvroValues(AvroSchema(DAMAGED), None, [], "read_kafka")
    rows, _ = decoded(decoder, [good, *values, good], lambda place, problem: refused.append(place))
    assert rows.num_rows == len(values) + 2 - len(refused)
    assert (
        rows.slice(0, 1).to_pylist(maps_as_pydicts="strict") == rows.slice(rows.num_rows - 1).to_pylist(maps_as_pydicts="strict") == [row]
    )
    assert not {0, len(values) + 1}.intersection(refused)


@pytest.mark.parametrize(
    ("kind", "plain", "value"),
    [
        ("int", "long", 2**31),
        (logical("bytes", "decimal", precision=4, scale=2), "bytes", (123_456).to_bytes(3, "big")),
    ],
)
def test_values_that_their_own_type_does_not_have_are_refused(kind, plain, value):
    with pytest.raises((UndecodableError, pa.ArrowException)):
        rows_of(record(kind), [written(record(plain), {"f0": value})])


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("{", "it is no Avro schema"),
        ("nonsense", "it is no Avro schema"),
        ({"type": "record"}, "it is no Avro schema"),
        ({"type": "record", "name": "R", "fields": 5}, "it is no Avro schema"),
        (record(), "it needs some, each once"),
        (record(["int", "string"]), r"field `f0` is a union of int, string, and a column has one type and null"),
        (record({"type": "array", "items": ["null", "int", "long"]}), r"field `f0.items` is a union of int, long"),
        (record(["null", "R"]), "field `f0` is a `R` within a `R`"),
        (record(logical("bytes", "decimal", precision=99)), "field `f0` is a decimal of 99 digits"),
    ],
)
def test_schemas_without_columns(schema, problem):
    with pytest.raises(SchemaError, match=problem):
        AvroSchema(schema).checked()
    with pytest.raises(ef.FlowError, match=rf"operator `read_kafka`: schema=.*{problem}"):
        ef.read_kafka("t", bootstrap="b:1", format="avro", schema=schema)
    with pytest.raises(ef.FlowError, match=rf"operator `write_kafka`: schema=.*{problem}"):
        ef.write_kafka("t", bootstrap="b:1", format="avro", schema=schema)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1], pa.uint8()), "long"),
        (pa.array([1.5], pa.float32()), "double"),
        (pa.array(["RED"]).dictionary_encode(), COLOUR),
        (pa.array([NOON.replace(tzinfo=None)], pa.timestamp("ns")), logical("long", "timestamp-millis")),
        (pa.array([[1]], pa.large_list(pa.int64())), {"type": "array", "items": "int"}),
        (pa.nulls(1), ["null", "string"]),
        (pa.array([{"f1": "x", "f0": 1}]), record("int", "string", name="Inner")),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_columns_of_another_width_or_unit_are_written(column, kind):
    schema, rows = record(kind), pa.record_batch({"f0": column})
    again = rows_of(schema, values_of(schema, rows)).column("f0")
    assert again.equals(column.cast(again.type))


@pytest.mark.parametrize(
    ("column", "kind", "problem"),
    [
        (pa.array([1, 2**40]), "int", "not in range"),
        (pa.array([1, None]), "long", "column `f0` has a null, which the schema doesn't allow"),
        (pa.array([True, None]), "boolean", "has a null"),
        (pa.array([[True], [None]]), {"type": "array", "items": "boolean"}, "has a null"),
        (pa.array([{"f0": True}, {"f0": None}]), record("boolean", name="I"), "has a null"),
        (pa.array([[("a", True)], [("a", None)]], pa.map_("string", "bool")), {"type": "map", "values": "boolean"}, "has a null"),
        (pa.array(["RED", "BLUE"]), COLOUR, "BLUE"),
        (pa.array([Decimal("1.25"), Decimal("1.255")]), logical("bytes", "decimal", precision=4, scale=2), "data loss|lose"),
        (pa.array([b"ab", b"abc"]), {"type": "fixed", "name": "F", "size": 2}, "size|width"),
        (pa.array([0, 1], pa.timestamp("us")), logical("long", "timestamp-millis"), "lose data"),
    ],
)
def test_values_that_a_schema_can_not_hold_are_named(column, kind, problem):
    with pytest.raises(ef.RecordError, match=problem) as raised:
        values_of(record(kind), pa.record_batch({"f0": column}))
    assert str(column[1].as_py())[:4] in str(raised.value) or column[1].as_py() is None


def test_a_null_of_a_list_or_a_record_that_may_be_null_hides_nothing():
    inner = record("boolean", name="I")
    schema = record(["null", inner], ["null", {"type": "array", "items": "boolean"}])
    rows = pa.record_batch(
        {
            "f0": pa.array([None, {"f0": True}], pa.struct([("f0", pa.bool_())])),
            "f1": pa.array([None, [True]], pa.list_(pa.bool_())),
        }
    )
    assert rows_of(schema, values_of(schema, rows)).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"f0": pa.int32()}, r"no column `f1` among f0; the schema has it, without a default"),
        ({"f0": pa.int32(), "f1": pa.string(), "x": pa.int8()}, r"column `x` isn't in the schema, which has f0, f1; remove it"),
        ({"f0": pa.string(), "f1": pa.string()}, r"column `f0` is string, and the schema's is int32: give it that type with cast"),
    ],
)
def test_columns_that_do_not_fit_the_schema(columns, problem):
    writing = AvroRows(AvroSchema(record("int", "string")), None, "write_kafka")
    found = writing.problem(Columns(columns, complete=True))
    assert found is not None
    assert re.search(problem, found)


def test_a_missing_column_has_its_default():
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 4}]}
    rows = pa.record_batch({"a": pa.array([1], pa.int32())})
    writing = AvroRows(AvroSchema(schema), None, "write_kafka")
    assert writing.problem(Columns({"a": pa.int32()}, complete=True)) is None
    assert rows_of(schema, values_of(schema, rows)).to_pylist() == [{"a": 1, "b": 4}]
