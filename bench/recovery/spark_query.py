"""The count per key of `output_log` as a Spark Structured Streaming query with its state in RocksDB, until it is killed.

`python -m evenflow.bench.recovery.spark_query FOLDER` starts, or resumes at the checkpoint in the folder. Micro-batches of a fixed number
of rows follow each other as fast as they are done; a batch's results count as written when all of them have been computed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from ..baselines.spark import spark_session
from .output_log import KEYS, STATE_BYTES, OutputLog

ROWS = 100_000
"""Rows of a micro-batch: the fewer, the earlier the first results."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run(folder: str) -> None:
    """Run until the process is killed. The file `session` in the folder says when the session was up."""
    from pyspark.sql import functions as f

    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "4g", "spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    spark = spark_session("evenflow-bench-recovery", **settings)
    (Path(folder) / "session").write_text(str(time.time_ns()))
    log = OutputLog(f"{folder}/outputs")

    def note(results: Any, number: int) -> None:
        """Log a batch, which has each of its keys once, so that every count must be that of its rows."""
        least, most, rows = results.agg(f.min("n"), f.max("n"), f.count("*")).collect()[0]
        first = number * ROWS
        expected = (first // KEYS + 1, (first + ROWS - 1) // KEYS + 1)
        log.note(first + ROWS - 1, rows, 0 if (least, most) == expected and rows == ROWS else rows)

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    rows = source.withColumn("state", f.lpad(f.col("value").cast("string"), STATE_BYTES - 8, "0"))
    counted = rows.groupBy((f.col("value") % KEYS).alias("key")).agg(f.count("*").alias("n"), f.last("state").alias("state"))
    query = counted.writeStream.outputMode("update").foreachBatch(note).option("checkpointLocation", f"{folder}/checkpoint").start()
    query.awaitTermination()


if __name__ == "__main__":
    run(sys.argv[1])
