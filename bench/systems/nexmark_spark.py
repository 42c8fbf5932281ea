"""NexMark's queries in Spark Structured Streaming on two cores, in one session.

In its favour: all files go into one micro-batch, and the shuffle has as many partitions as there are cores instead of 200.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...connectors.nexmark.source import STREAMS
from ..data import spark_session
from ..machine import CpuWatch
from ..nexmark.data import CSV_SCHEMAS
from ..nexmark.events import side_table
from ..nexmark.spark_sql import QUERIES
from ..task import Answer, Task

WAIT = 3000
SQL_TYPES = {"int64": "BIGINT", "string": "STRING"}


def run(task: Task) -> Iterator[Answer]:
    """A query for each iteration, whose rows are discarded, and one that writes them to `task.output`.

    `options["checked"]`: the folder of the CSV files that the last one reads.
    """
    spark = spark_session("evenflow-bench", **{"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "8g"})
    spark.createDataFrame(side_table().to_pylist()).createOrReplaceTempView("side")
    for _ in range(task.repeat):
        _register(spark, Path(task.folder))
        with CpuWatch() as cpu:
            begun = time.monotonic()
            _execute(task, spark.sql(QUERIES[task.name]).writeStream.format("noop"))
            seconds = time.monotonic() - begun
        yield Answer(seconds, task.rows, {}, {"cpu_seconds": cpu.seconds})
    _register(spark, Path(task.options["checked"]))
    _execute(task, spark.sql(QUERIES[task.name]).writeStream.format("parquet").option("path", task.output))
    spark.stop()


def _register(spark: Any, folder: Path) -> None:
    """Make the streams of a folder's files the tables of the queries."""
    from pyspark.sql import functions as f

    for stream in STREAMS:
        schema = CSV_SCHEMAS[stream]
        columns = ", ".join(f"{field.name} {SQL_TYPES[str(field.type)]}" for field in schema)
        rows = spark.readStream.schema(columns).csv(f"{folder}/{stream}").na.fill("")  # no text is null, but Spark reads an empty one so
        for time_column in ("dateTime", "expires"):
            if time_column in schema.names:
                rows = rows.withColumn(time_column, f.timestamp_millis(time_column))
        rows.withWatermark("dateTime", "0 seconds").createOrReplaceTempView(stream)


def _execute(task: Task, writer: Any) -> None:
    checkpoint = f"{task.output}-checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    query = writer.outputMode("append").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    if not query.awaitTermination(WAIT):
        raise TimeoutError(f"Spark's query for {task.name} did not end within {WAIT:,} s")
    shutil.rmtree(checkpoint)
