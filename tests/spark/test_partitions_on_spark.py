"""Spark reads partitioned output of the file sinks with the values that were written."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import evenflow as ef

TEXTS = ["eu", "a b/c:d=e%f*g?\"h'i#j{k[l]m^n\\o", "\u00e9\u4e2d", "007", "x\x01\x7f", None]
DAYS = [dt.date(1, 1, 1), dt.date(2026, 1, 31), None]


@pytest.mark.parametrize(("write", "kind"), [(ef.write_parquet, "parquet"), (ef.write_json, "json"), (ef.write_csv, "csv")])
def test_spark_finds_each_row_with_the_values_of_its_partition(write, kind, spark, tmp_path):
    rows = [
        {"text": text, "day": DAYS[n % 3], "number": [-(2**63), None, 7][n % 3], "flag": [True, False, None][n % 3], "n": n}
        for n, text in enumerate(TEXTS * 2)
    ]
    sink = write(tmp_path / "out", partition_by=("text", "day", "number", "flag"))
    sink.start()
    writer = sink.writer(0, 1)
    schema = pa.schema({"text": pa.string(), "day": pa.date32(), "number": pa.int64(), "flag": pa.bool_(), "n": pa.int64()})
    writer.write(ef.Batch(pa.RecordBatch.from_pylist(rows, schema)))
    sink.commit(1, writer.prepare(1))
    reader = spark.read.schema("n long, text string, day date, number long, flag boolean")
    frame = reader.option("header", True).csv(str(tmp_path / "out")) if kind == "csv" else reader.format(kind).load(str(tmp_path / "out"))
    found = [{name: row[name] for name in schema.names} for row in frame.collect()]
    assert sorted(found, key=lambda row: row["n"]) == rows
