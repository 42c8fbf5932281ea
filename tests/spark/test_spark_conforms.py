"""Sources and sinks of Spark keep the engine's contract, with a real Spark."""

from __future__ import annotations

from pathlib import Path

from driving import rows_of

import evenflow as ef
from evenflow.testing import check_sink, check_source


def test_a_dataframe_conforms(spark, tmp_path: Path):
    df = spark.range(60).selectExpr("id AS n", "timestamp_millis(id * 1000) AS ts").repartition(4)
    written = rows_of(ef.from_spark(df, event_time="ts", max_delay="1m", path=tmp_path, max_rows_per_file=7))
    source = ef.from_spark(df, event_time="ts", max_delay="1m", path=tmp_path, reuse=True)
    check_source(source, seeds=range(20))
    assert sorted(row["n"] for row in rows_of(source)) == sorted(row["n"] for row in written) == [*range(60)]


def test_batches_that_are_handed_to_a_function_conform(spark):
    def begin():
        batches = {}

        def keep(df, number):
            batches[number] = df.collect()

        return ef.to_spark(spark, foreach_batch=keep), lambda: [{"n": row["n"]} for rows in batches.values() for row in rows]

    check_sink(begin, seeds=range(2))


def test_a_table_conforms(spark):
    def begin():
        spark.sql("DROP TABLE IF EXISTS conformance")

        def read():
            return [] if not spark.catalog.tableExists("conformance") else [{"n": row["n"]} for row in spark.table("conformance").collect()]

        return ef.to_spark(spark, table="conformance"), read

    check_sink(begin, seeds=range(2))
