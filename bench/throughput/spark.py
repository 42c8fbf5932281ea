"""T1 in Spark Structured Streaming on two cores, in one session, so that later iterations find a warm JVM.

In its favour, all files may go into one micro-batch, the shuffle has as many partitions as there are cores instead of 200, and the time
begins when the query is started in a session that is up.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

from ..baselines.spark import spark_session
from ..harness.machine import CpuWatch
from ..harness.task import Answer, Task
from .results import result_of_windows

WAIT = 600


def run(task: Task) -> Iterator[Answer]:
    """Run a query for each iteration. `options["files_per_trigger"]`: Spark's maxFilesPerTrigger."""
    spark = spark_session("evenflow-bench", **{"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "6g"})
    files, checkpoint = int(task.options["files_per_trigger"]), f"{task.output}-checkpoint"
    for _ in range(task.repeat):
        for folder in (task.output, checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
        writer = windows(spark, task.folder, files).writeStream.format("parquet").outputMode("append").option("path", task.output)
        with CpuWatch() as cpu:
            begun = time.monotonic()
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            if not query.awaitTermination(WAIT):
                raise TimeoutError(f"Spark's query did not end within {WAIT:,} s")
            seconds = time.monotonic() - begun
        result = result_of_windows(task.output, "start", task.last_window)
        yield Answer(seconds, task.rows, result, {"cpu_seconds": cpu.seconds, "files_per_trigger": files})
    spark.stop()


def windows(spark: Any, folder: str, files: int) -> Any:
    """Return T1 as a streaming DataFrame."""
    from pyspark.sql import functions as f

    source = spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", files).parquet(folder)
    timed = source.withColumn("time", f.timestamp_millis("ts")).withWatermark("time", "50 milliseconds")
    grouped = timed.groupBy("key", f.window("time", "1 second")).agg(f.count("*").alias("n"), f.sum("value").alias("total"))
    return grouped.select("key", (f.unix_millis(f.col("window.start"))).alias("start"), "n", "total")
