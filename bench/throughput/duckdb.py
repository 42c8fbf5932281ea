"""T1 in DuckDB on two threads: a batch query, the reference for vectorised code on the same files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from ..harness.machine import CpuWatch
from ..harness.task import Answer, Task
from .results import WINDOW_MS, result_of_windows


def run(task: Task) -> Iterator[Answer]:
    """Run the query for each iteration."""
    connection = duckdb.connect(config={"threads": 2})
    for _ in range(task.repeat):
        shutil.rmtree(task.output, ignore_errors=True)
        Path(task.output).mkdir(parents=True)
        query = (
            f"COPY (SELECT key, ts // {WINDOW_MS} * {WINDOW_MS} AS start, count(*) AS n, sum(value) AS total "  # noqa: S608 -- our own words
            f"FROM read_parquet('{task.folder}/*.parquet') GROUP BY ALL) TO '{task.output}/part.parquet' (FORMAT parquet)"
        )
        with CpuWatch() as cpu:
            begun = time.monotonic()
            connection.execute(query)
            seconds = time.monotonic() - begun
        yield Answer(seconds, task.rows, result_of_windows(task.output, "start", task.last_window), {"cpu_seconds": cpu.seconds})
