"""The data that every system reads: Spark writes it once per size, into a cache folder.

A row depends on its number alone, so the same command writes the same files anywhere: a million rows per second of event time, at most
50 ms out of order, keys by Zipf's law, values that are multiples of 1/8 so that their sums are exact in any order.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ...connectors.generated.generate import GeneratedRows
from ...engine.errors import ConnectorError
from ..baselines.spark import spark_session

KEYS = 100_000
ZIPF = 1.2
ROWS_PER_SECOND = 1_000_000
MAX_DELAY_MS = 50
START_MS = 1_700_000_000_000
FILES = 10
ROWS = 10_000_000
MEAN = 200.0
ROWS_PER_PIECE = 65_536
VARIANTS = ("integers", "strings")
SCHEMA = "key {key}, ts long, value double"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A folder of Parquet files with `rows` rows. `last_window`: start (ms) of the last tumbling window of 1 s that has rows."""

    folder: Path
    rows: int
    last_window: int

    @property
    def files(self) -> list[Path]:
        """The files in the order of their rows."""
        return sorted(self.folder.glob("*.parquet"))


def folder_of(cache: Path, variant: str, rows: int) -> Path:
    """Return the folder of `rows` rows of a variant below the cache folder."""
    return cache / f"{variant}-{rows}"


def find(cache: Path, variant: str, rows: int) -> Dataset:
    """Return the data. Raises ConnectorError if there is none."""
    folder = folder_of(cache, variant, rows)
    if not (folder / "_SUCCESS").exists():
        raise ConnectorError(f"no benchmark data in {folder}: make it with `evenflow bench data --rows {rows} --folder {cache}`")
    return Dataset(folder, rows, _newest(folder) // 1000 * 1000)


def make(cache: Path, rows: int) -> list[Dataset]:
    """Write the variants that don't exist yet, by Spark; returns both."""
    missing = [v for v in VARIANTS if not (folder_of(cache, v, rows) / "_SUCCESS").exists()]
    if missing:
        spark = spark_session("evenflow-bench-data")
        try:
            for variant in missing:
                _write(spark, folder_of(cache, variant, rows), rows, strings=variant == "strings")
        finally:
            spark.stop()
    return [find(cache, variant, rows) for variant in VARIANTS]


def columns(seq: npt.NDArray[np.int64], *, strings: bool) -> pa.RecordBatch:
    """Return rows `seq`: `key`, `ts` (ms), `value` (exponential with mean 200, so that a row in twenty is above three times the mean)."""
    made = GeneratedRows(KEYS, ZIPF, strings, 0, START_MS, float(ROWS_PER_SECOND), MAX_DELAY_MS).columns(seq)
    uniform = made["value"].to_numpy() / 1000.0
    value = np.round(-np.log1p(-uniform) * MEAN * 8.0) / 8.0
    return pa.record_batch({"key": made["key"], "ts": made["ts"], "value": value})


def _write(spark: Any, folder: Path, rows: int, *, strings: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    schema = SCHEMA.format(key="string" if strings else "long")

    def pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield columns(batch.column(0).to_numpy(), strings=strings)

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ROWS_PER_PIECE))
    spark.range(0, rows, 1, FILES).mapInArrow(pieces, schema).write.parquet(str(folder))


def _newest(folder: Path) -> int:
    """Return the largest event time (ms), from the files' statistics."""
    newest = 0
    for path in folder.glob("*.parquet"):
        metadata = pq.ParquetFile(path).metadata
        column = metadata.schema.to_arrow_schema().names.index("ts")
        newest = max(newest, *(metadata.row_group(i).column(column).statistics.max for i in range(metadata.num_row_groups)))
    return int(newest)
