from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from evenflow.connectors.spark.types import as_engine, as_parquet, parquet_schema, spark_refuses
from evenflow.engine.errors import ConnectorError


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (pa.float16(), "float32"),
        (pa.list_(pa.float16()), "float32"),
        (pa.time64("us"), "time of day"),
        (pa.map_(pa.string(), pa.struct([("a", pa.time32("s"))])), "time of day"),
        (pa.decimal256(50, 2), "38 digits"),
        (pa.month_day_nano_interval(), "duration"),
        (pa.struct([]), "without fields"),
        (pa.dense_union([pa.field("a", pa.int64())]), "unions"),
        (pa.dictionary(pa.int32(), pa.float16()), "float32"),
    ],
)
def test_a_type_that_spark_can_not_read_is_refused_with_advice(kind: pa.DataType, problem: str):
    assert problem in (spark_refuses(kind) or "")


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.uint64(), pa.timestamp("ns"), pa.list_(pa.string()), pa.dictionary(pa.int32(), pa.string())]
)
def test_a_type_that_spark_reads_is_let_through(kind: pa.DataType):
    assert spark_refuses(kind) is None


def test_columns_of_nulls_are_dropped_unless_all_columns_are():
    assert parquet_schema(pa.schema({"a": pa.null(), "b": pa.int64()})).names == ["b"]
    assert parquet_schema(pa.schema({"a": pa.null()})).types == [pa.int32()]


def test_digits_below_a_microsecond_are_not_lost_in_silence():
    rows = pa.record_batch({"when": pa.array([1_001], pa.timestamp("ns"))})
    with pytest.raises(ConnectorError, match="operator `out`: column `when` loses digits"):
        as_parquet(rows, parquet_schema(rows.schema), "out")


def test_times_of_the_day_in_dates_are_not_lost_in_silence():
    whole, part = (pa.array([count], pa.int64()).view(pa.date64()) for count in (86_400_000, 86_400_001))
    schema = parquet_schema(pa.schema({"day": pa.date64()}))
    assert as_parquet(pa.record_batch({"day": whole}), schema, "out").to_pylist() == [{"day": date(1970, 1, 2)}]
    with pytest.raises(ConnectorError, match="operator `out`: column `day` loses its times of the day in Spark's dates"):
        as_parquet(pa.record_batch({"day": part}), schema, "out")


def test_a_value_of_a_file_that_the_type_of_the_frame_would_change_is_refused_by_name():
    schema = pa.schema({"x": pa.float32()})
    assert as_engine(pa.record_batch({"x": [0.5]}), schema, "a.parquet", "read").schema.equals(schema)
    with pytest.raises(ConnectorError, match=r"operator `read`: column `x` of a.parquet isn't float, as the DataFrame says: 1e\+300 is"):
        as_engine(pa.record_batch({"x": [1e300]}), schema, "a.parquet", "read")


def test_integers_become_the_durations_that_they_are_in_spark():
    schema = pa.schema({"took": pa.list_(pa.duration("us"))})
    assert as_engine(pa.record_batch({"took": [[1, None]]}), schema, "a.parquet", "read").schema.equals(schema)
