"""Spark Structured Streaming on two cores, in one session, so that later iterations find a warm JVM.

In its favour: all files may go into one micro-batch, the shuffle has as many partitions as there are cores instead of 200, and the time
begins when the query is started in a session that is up.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

from ..data import spark_session
from ..machine import CpuWatch
from ..task import Answer, Task, result_of_windows

FILES_PER_TRIGGER = 10


def run(task: Task) -> Iterator[Answer]:
    """T1 only."""
    spark = spark_session("evenflow-bench", **{"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "6g"})
    files = int(task.options.get("files_per_trigger", FILES_PER_TRIGGER))
    for number in range(task.repeat):
        checkpoint = f"{task.output}-checkpoint-{number}"
        for folder in (task.output, checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
        results = windows(spark, task.folder, files)
        writer = results.writeStream.outputMode("append").format("parquet").option("path", task.output)
        with CpuWatch() as cpu:
            begun = time.monotonic()
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            if not query.awaitTermination(600):
                raise TimeoutError(f"Spark's query for {task.name} did not end within 600 s")
            seconds = time.monotonic() - begun
        shutil.rmtree(checkpoint)
        result = result_of_windows(task.output, "start", task.last_window)
        yield Answer(seconds, task.rows, result, {"cpu_seconds": cpu.seconds, "files_per_trigger": files})
    spark.stop()


def windows(spark: Any, folder: str, files: int) -> Any:
    """T1 as a streaming DataFrame."""
    from pyspark.sql import functions as f

    source = spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", files).parquet(folder)
    timed = source.withColumn("time", f.timestamp_millis("ts")).withWatermark("time", "50 milliseconds")
    grouped = timed.groupBy("key", f.window("time", "1 second")).agg(f.count("*").alias("n"), f.sum("value").alias("total"))
    return grouped.select("key", (f.unix_millis(f.col("window.start"))).alias("start"), "n", "total")
