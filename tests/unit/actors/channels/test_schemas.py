from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.channels.schemas import MAX_SCHEMA_BYTES, loose_columns, plain_schema, plain_type, read_schema, write_schema
from evenflow.engine.errors import ProtocolError

CITY = pa.dictionary(pa.int32(), pa.string())
MUTABLE = write_schema(pa.schema({"a": pa.int64(), "b": pa.list_(pa.struct({"c": pa.string()}))})).to_pybytes()


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        pytest.param(CITY, pa.string(), id="dictionary"),
        pytest.param(pa.dictionary(pa.int8(), CITY), pa.string(), id="dictionary of dictionary"),
        pytest.param(pa.list_(CITY), pa.list_(pa.string()), id="list"),
        pytest.param(pa.large_list(CITY), pa.large_list(pa.string()), id="large list"),
        pytest.param(pa.list_(CITY, 2), pa.list_(pa.string(), 2), id="fixed-size list"),
        pytest.param(pa.struct({"c": CITY, "n": pa.int8()}), pa.struct({"c": pa.string(), "n": pa.int8()}), id="struct"),
        pytest.param(pa.map_(pa.string(), CITY), pa.map_(pa.string(), pa.string()), id="map"),
        pytest.param(pa.list_view(pa.int64()), pa.list_view(pa.int64()), id="list view"),
        pytest.param(pa.decimal128(9, 2), pa.decimal128(9, 2), id="decimal"),
    ],
)
def test_dictionaries_become_their_values(kind, plain):
    assert plain_type(kind) == plain


def test_an_extension_type_names_its_column_and_what_to_do():
    with pytest.raises(TypeError, match=r"column `id` has the extension type .* cast it to its storage type"):
        plain_schema(pa.schema({"id": pa.uuid()}))


def test_metadata_stays_behind():
    schema = pa.schema([pa.field("a", pa.int64(), metadata={"ARROW:extension:name": "x"})], metadata={"k": "v"})
    sent = read_schema(write_schema(plain_schema(schema)).to_pybytes())
    assert sent.equals(pa.schema({"a": pa.int64()}), check_metadata=True)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(pa.schema({"id": pa.uuid()}), id="extension type"),
        pytest.param(pa.schema({"l": pa.list_(pa.uuid())}), id="nested extension type"),
        pytest.param(pa.schema({"c": CITY}), id="dictionary"),
        pytest.param(pa.schema({"x" * MAX_SCHEMA_BYTES: pa.int64()}), id="too long"),
    ],
)
def test_a_schema_that_is_never_sent_is_refused_when_it_comes(schema):
    with pytest.raises(ProtocolError):
        read_schema(schema.serialize().to_pybytes())


def test_a_schema_too_large_to_be_read_is_not_sent():
    with pytest.raises(TypeError, match="more than the allowed"):
        write_schema(pa.schema({"x" * MAX_SCHEMA_BYTES: pa.int64()}))


@given(st.binary(max_size=300) | st.tuples(st.integers(0, len(MUTABLE) - 1), st.integers(0, 255)).map(lambda m: _with_byte(*m)))
def test_bytes_that_are_no_schema_are_refused(frame):
    with suppress(ProtocolError):
        assert isinstance(read_schema(frame), pa.Schema)


def test_only_fixed_width_columns_are_taken_without_a_look_at_each_value():
    schema = pa.schema(
        {"i": pa.int64(), "s": pa.string(), "b": pa.bool_(), "l": pa.list_(pa.int8()), "t": pa.timestamp("us"), "n": pa.null()}
    )
    assert loose_columns(schema) == (1, 3)


def _with_byte(index, value):
    return MUTABLE[:index] + bytes([value]) + MUTABLE[index + 1 :]
