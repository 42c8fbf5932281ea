"""The CSV files that `operators` reads: uniform keys, and ten thousand rows per second of event time, at most 50 ms out of order.

Each side of a join, and the one input of the other tasks, is a folder of two files with every second row each, so that two readers go
through event time together.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

FILES = 2
ROWS_PER_MS = 10
MAX_DELAY_MS = 50
START_MS = 1_700_000_000_000
KEYS = {"join": 10_000, "session": 100_000, "top": 10_000}
SIDES = {"join": ("left", "right"), "session": ("left",), "top": ("left",)}
PIECE = 1_000_000


@dataclass(frozen=True, slots=True)
class Input:
    """`folder` has a folder for each side; `rows` in all; `last`: the latest event time in ms."""

    folder: Path
    rows: int
    last: int


def find(cache: Path, name: str, rows: int) -> Input:
    """The data of a task, made now unless it is there."""
    folder = cache / f"operators-{name}-{rows}"
    each = rows // len(SIDES[name])
    if not (folder / "_SUCCESS").exists():
        shutil.rmtree(folder, ignore_errors=True)
        for seed, side in enumerate(SIDES[name]):
            _write(folder / side, each, KEYS[name], seed)
        (folder / "_SUCCESS").touch()
    return Input(folder, rows, START_MS + each // ROWS_PER_MS)


def _write(folder: Path, rows: int, keys: int, seed: int) -> None:
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    writers = [
        csv.CSVWriter(folder / f"{number}.csv", _schema(), write_options=csv.WriteOptions(include_header=False)) for number in range(FILES)
    ]
    for first in range(0, rows, PIECE):
        number = np.arange(first, min(first + PIECE, rows))
        times = START_MS + number // ROWS_PER_MS - random.integers(0, MAX_DELAY_MS, len(number))
        columns = [random.integers(0, keys, len(number)), times, random.integers(0, 1 << 20, len(number)) / 8.0, number]
        batch = pa.record_batch([pa.array(column) for column in columns], schema=_schema())
        for file, writer in enumerate(writers):
            writer.write_batch(batch.take(pa.array(np.arange(file, len(number), FILES))))
    for writer in writers:
        writer.close()


def _schema() -> pa.Schema:
    return pa.schema({"key": pa.int64(), "ts": pa.int64(), "value": pa.float64(), "seq": pa.int64()})
