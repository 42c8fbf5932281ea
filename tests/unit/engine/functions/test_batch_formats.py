"""Formats of batches: values pass through pandas, Polars and numpy as they were, or the row is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.errors import FlowError, RecordError
from evenflow.engine.functions import batch_formats
from evenflow.engine.functions.batch_formats import FORMATS, check_format, in_format, rows_of_result
from evenflow.engine.operators.rows.map_batches import MapBatches

NOON = datetime(2026, 1, 31, 12, 30, 15, 123456)

COLUMNS = {
    "int64": pa.array([2**53 + 1, None, -(2**63)]),
    "uint64": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "int8": pa.array([-128, None, 127], pa.int8()),
    "float64": pa.array([float("nan"), None, -0.0]),
    "float32": pa.array([1.5, None, float("inf")], pa.float32()),
    "bool": pa.array([True, None, False]),
    "string": pa.array(["ä", None, ""]),
    "binary": pa.array([b"\0", None, b""]),
    "decimal128(38, 9)": pa.array([Decimal("1234567890123456789012345678.123456789"), None, Decimal("-0.000000001")], pa.decimal128(38, 9)),
    "date32": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
    "time64[us]": pa.array([time(23, 59, 59, 999_999), None, time(0)]),
    "timestamp[us]": pa.array([NOON, None, datetime(1900, 1, 1)]),
    "timestamp[us, UTC]": pa.array([NOON.replace(tzinfo=UTC), None, datetime(1900, 1, 1, tzinfo=UTC)]),
    "timestamp[ns]": pa.array([2**62 + 1, None, -(2**62) - 1], pa.timestamp("ns")),
    "duration[us]": pa.array([timedelta(days=9, microseconds=1), None, timedelta(-1)]),
    "list of int64": pa.array([[2**53 + 1, None], None, []], pa.list_(pa.int64())),
    "struct": pa.array([{"a": 2**53 + 1, "b": None}, {"a": None, "b": "x"}, {"a": 1, "b": "y"}]),
}


def through(column: pa.Array, chosen: str) -> pa.Array:
    rows = pa.record_batch({"x": column})
    return rows_of_result(in_format(rows, chosen)).column(0)


@pytest.mark.parametrize("chosen", ["arrow", "pandas", "polars"])
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_values_and_nulls_pass_through_a_frame_unchanged(column, chosen):
    found = through(column, chosen)
    assert str(found.cast(column.type, safe=True).to_pylist()) == str(column.to_pylist())


def test_the_type_of_a_column_that_passes_through_pandas_stays():
    assert {name: through(column, "pandas").type for name, column in COLUMNS.items()} == {name: c.type for name, c in COLUMNS.items()}


@pytest.mark.parametrize("name", ["int64", "uint64", "int8", "float64", "bool", "date32", "timestamp[us]", "timestamp[ns]", "duration[us]"])
def test_numpy_refuses_nulls_where_it_has_none_and_passes_other_values(name):
    column = COLUMNS[name]
    if name != "bool":  # an array of booleans and None has objects
        with pytest.raises(ValueError, match="column `x` has nulls"):
            in_format(pa.record_batch({"x": column}), "numpy")
    whole = column.drop_null()
    assert str(through(whole, "numpy").cast(column.type).to_pylist()) == str(whole.to_pylist())


def test_each_format_gives_what_its_users_know():
    rows = pa.record_batch({"n": [1, 2]})
    assert in_format(rows, "arrow") is rows
    frame, table, arrays = (in_format(rows, chosen) for chosen in ("pandas", "polars", "numpy"))
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(table, pl.DataFrame)
    assert isinstance(arrays["n"], np.ndarray)


@pytest.mark.parametrize("chosen", FORMATS)
def test_a_function_of_each_format_adds_a_column(drive, chosen):
    totals = {
        "pandas": lambda frame: frame.assign(total=frame["n"]),
        "polars": lambda frame: frame.with_columns(total=pl.col("n")),
    }
    total = totals.get(chosen, lambda batch: {"n": batch["n"], "total": batch["n"]})
    step = drive(MapBatches(total, format=chosen))
    assert step.process([{"n": 2}, {"n": 5}], [7, 8]) == [{"n": 2, "total": 2}, {"n": 5, "total": 5}]
    assert step.times["out"] == [7, 8]


def test_a_row_with_a_null_that_numpy_has_not_is_refused_alone(drive):
    step = drive(MapBatches(lambda arrays: {"n": arrays["n"] + 1}, on_error="dead_letter", format="numpy"))
    assert step.process([{"n": 1}, {"n": None}, {"n": 3}]) == [{"n": 2}, {"n": 4}]
    (letter,) = step.rows["dead_letters"]
    assert (letter["record"], letter["message"]) == (
        '{"n": null}',
        'column `n` has nulls, and numpy no value for them: fill them before, or use format="arrow"',
    )


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (pl.LazyFrame({"a": [1]}), r"its result: .*call \.collect\(\) first"),
        (pd.DataFrame([[1]], columns=[5]), "its result: .*column 5 is no text"),
        (pd.DataFrame({"a": [1, "x"]}), "its result: .*column `a`"),
        (pl.DataFrame(), "no columns"),
        (pd.Series([1]), "got Series"),
    ],
)
def test_results_that_are_no_rows_are_refused(drive, result, problem):
    with pytest.raises(RecordError, match=f"operator `step`: .*returned no batch of rows: .*{problem}"):
        drive(MapBatches(lambda batch: result)).process([{"a": 1}])


def test_a_package_that_is_missing_is_named_when_the_flow_is_written(monkeypatch):
    monkeypatch.setattr(batch_formats, "find_spec", lambda name: None)
    assert check_format("numpy", "map_batches") == "numpy"
    with pytest.raises(FlowError, match=r"map_batches\(format=.polars.\) needs the package polars: pip install polars"):
        ef.Dataflow("f").read(ef.from_items([1])).map_batches(len, format="polars")
