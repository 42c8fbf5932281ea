"""Support for tests with Spark: starts Spark, and drives sources by hand, as a worker would."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from patience import patience
from pyspark.sql import SparkSession

from evenflow.engine.batch import Batch
from evenflow.engine.source import Source, SourceReader

QUICK_START = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
)
"""Options for the JVM, also for programs that start Spark: optimising short programs and queries over few rows costs more than it
saves.

Java would print on the standard output that an archive of classes belongs to another program.
"""

LOOK_SECONDS = 0.1
"""Seconds between two checks; many are a job of Spark's."""


def start_spark(folder: Path) -> SparkSession:
    """Start one session per process; it listens on this machine only."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("evenflow-tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "OFF",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def wait_until(condition: Callable[[], bool], what: str, seconds: float = patience(60), every: float = LOOK_SECONDS) -> None:
    """Wait, with a bound, for the condition: Spark commits when it is ready."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(every)


def batches_of(reader: SourceReader, max_rows: int = 1_000, seconds: float = patience(60)) -> Iterator[Batch]:
    """Yield the reader's batches until it is finished."""
    deadline = time.monotonic() + seconds
    while not reader.finished:
        batch = reader.poll(max_rows)
        if batch is None:
            assert time.monotonic() < deadline, f"the reader was not finished within {seconds} s"
            time.sleep(reader.ready_in())
        else:
            yield batch


def rows_of(source: Source, parallelism: int = 1) -> list[dict[str, object]]:
    """Return all rows of a source, by running it to its end."""
    source.start()
    try:
        readers = [source.reader(index, parallelism) for index in range(parallelism)]
        return [row for reader in readers for batch in batches_of(reader) for row in batch.to_rows()]
    finally:
        source.stop()


def far_above_the_mean() -> Callable[[Any, Any], Any]:
    """Return a function that emits rows far above the mean of their key. It is nested, so that workers need not import this module."""

    def far_above(state: Any, row: Any) -> Any:
        n, total = state or (0, 0.0)
        mean = total / n if n else row["value"]
        kept = {"key": row["key"], "seq": row["seq"], "mean": mean} if row["value"] > 1.8 * mean else None
        return (n + 1, total + row["value"]), kept

    return far_above
