from __future__ import annotations

import pyarrow as pa
import pytest

from evenflow.connectors.files.one_schema import fitted, settled
from evenflow.engine.errors import ConnectorError


def test_a_settled_schema_can_only_gain_types():
    schema = pa.schema({"a": pa.null(), "b": pa.int64()})
    for later in ({"a": pa.string(), "b": pa.int64()}, {"b": pa.null(), "a": pa.null()}):
        schema = settled(schema, pa.schema(later), "write")
    assert schema == pa.schema({"a": pa.string(), "b": pa.int64()})


def test_a_changed_type_names_both():
    with pytest.raises(ConnectorError, match="operator `write`: column `a` changed from int64 to double"):
        settled(pa.schema({"a": pa.int64()}), pa.schema({"a": pa.float64()}), "write")


def test_fitting_drops_metadata_and_copies_nothing_else():
    rows = pa.record_batch({"a": [1]}).replace_schema_metadata({"k": "v"})
    fit = fitted(rows, pa.schema({"a": pa.int64()}), "write")
    assert fit.schema.metadata is None
    assert fit.column(0).buffers()[1].address == rows.column(0).buffers()[1].address


def test_a_narrower_column_is_converted_and_a_value_that_would_change_is_named():
    schema = settled(pa.schema({"a": pa.float64()}), pa.schema({"a": pa.int64()}), "write")
    assert fitted(pa.record_batch({"a": [1, None]}), schema, "write").to_pydict() == {"a": [1.0, None]}
    with pytest.raises(ConnectorError, match="operator `write`: column `a` is double, and 9007199254740993"):
        fitted(pa.record_batch({"a": [2**53 + 1]}), schema, "write")


def test_a_type_may_widen_where_files_have_none():
    schema = settled(pa.schema({"a": pa.int64()}), pa.schema({"a": pa.float64()}), "write", widen=True)
    assert schema == pa.schema({"a": pa.float64()})
    with pytest.raises(ConnectorError, match="column `a` changed from int64 to string"):
        settled(pa.schema({"a": pa.int64()}), pa.schema({"a": pa.string()}), "write", widen=True)
