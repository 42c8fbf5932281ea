"""The operators' tasks in Spark Structured Streaming on two cores, in one session; top rows are not possible there.

In its favour: all files go into one micro-batch, and the shuffle has as many partitions as there are cores instead of 200.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

from ..data import spark_session
from ..machine import CpuWatch
from ..task import Answer, Task

SCHEMA = "key long, ts long, value double, seq long"


def run(task: Task) -> Iterator[Answer]:
    """A query for each iteration."""
    spark = spark_session("evenflow-bench", **{"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "8g"})
    for number in range(task.repeat):
        checkpoint = f"{task.output}-checkpoint-{number}"
        for folder in (task.output, checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
        writer = _results(spark, task).writeStream.outputMode("append").format("csv").option("path", task.output)
        with CpuWatch() as cpu:
            begun = time.monotonic()
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            if not query.awaitTermination(3000):
                raise TimeoutError(f"Spark's query for {task.name} did not end within 3,000 s")
            seconds = time.monotonic() - begun
        shutil.rmtree(checkpoint)
        yield Answer(seconds, task.rows, {}, {"cpu_seconds": cpu.seconds})
    spark.stop()


def _results(spark: Any, task: Task) -> Any:
    from pyspark.sql import functions as f

    def read(side: str) -> Any:
        rows = spark.readStream.schema(SCHEMA).csv(f"{task.folder}/{side}")
        return rows.withColumn("time", f.timestamp_millis("ts")).withWatermark("time", "50 milliseconds")

    left = read("left")
    if task.name == "join":
        a, b = left.alias("a"), read("right").alias("b")
        near = f.expr("a.key = b.key AND b.time BETWEEN a.time AND a.time + INTERVAL 1 SECOND")
        return a.join(b, near).select("a.key", f.col("a.seq").alias("a"), f.col("b.seq").alias("b"), f.col("a.ts").alias("t"))
    sessions = left.groupBy("key", f.session_window("time", "20 seconds").alias("w"))
    return sessions.agg(f.max("ts").alias("t"), f.count("*").alias("n"), f.sum("value").alias("total")).drop("w")
