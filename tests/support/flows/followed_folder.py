"""A folder that a source follows: files of all kinds appear in it, while readers are polled, lost and shared out."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from readers_at_random import Readers

from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.json import read_json
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.connectors.formats.text import read_text
from evenflow.engine.source import Source

MAX_DELAY = 5
"""Milliseconds by which a row may be older than one before it in its file, or in a file that appeared earlier."""

SCHEMA = pa.schema({"ts": pa.int64(), "n": pa.int64()})
FOLLOWED: dict[str, Any] = {"follow": True, "poll_every": "1us"}
TIMED: dict[str, Any] = {**FOLLOWED, "event_time": "ts", "max_delay": MAX_DELAY / 1000, "schema": SCHEMA}

Row = tuple[int, int]
Write = Callable[[Path, list[Row]], None]


def write_parquet(path: Path, rows: list[Row]) -> None:
    pq.write_table(pa.table([[ts for ts, _ in rows], [n for _, n in rows]], SCHEMA), path, row_group_size=3)


def write_csv(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(["ts,n\n", *(f"{ts},{n}\n" for ts, n in rows)]))


def write_csv_gz(path: Path, rows: list[Row]) -> None:
    path.write_bytes(gzip.compress("".join(["ts,n\n", *(f"{ts},{n}\n" for ts, n in rows)]).encode()))


def write_json(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(f'{{"ts": {ts}, "n": {n}}}\n' for ts, n in rows))


def write_text(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(f"{n}\n" for _, n in rows))


KINDS: dict[str, tuple[Callable[..., Source], Write, dict[str, Any]]] = {
    "parquet": (read_parquet, write_parquet, TIMED),
    "csv": (read_csv, write_csv, TIMED),
    "csv.gz": (read_csv, write_csv_gz, TIMED),
    "json": (read_json, write_json, TIMED),
    "txt": (read_text, write_text, FOLLOWED),
}


class Folder:
    """A folder into which files are renamed. `url`: by which it is read."""

    def __init__(self, path: Path, kind: str, url: str | None = None) -> None:
        self.path, self.kind, self.files, self.url = path, kind, 0, url or str(path)
        self.read, self.write, self.options = KINDS[kind]

    def source(self, **options: Any) -> Source:
        source: Source = self.read(self.url, **{**self.options, **options})
        source.start()
        return source

    def arrive(self, rows: list[Row], name: str | None = None, changed: int | None = None) -> Path:
        hidden = self.path / f".{self.files}.tmp"
        self.write(hidden, rows)
        if changed is not None:
            os.utime(hidden, ns=(changed, changed))
        path = self.path / (name or f"{self.files}.{self.kind}")
        hidden.rename(path)
        self.files += 1
        return path


def run(folder: Folder, random: random.Random, steps: int) -> tuple[list[list[int]], list[int]]:
    """Add files while readers are polled, lost and reassigned. Return the rows of each file, and the rows read."""
    files, time = list[list[int]](), 1_000
    newest, changed = time, 10**18
    readers = Readers(folder.source(), random.randint(1, 3))
    for _ in range(steps):
        step = random.random()
        if step < 0.3:
            rows = list[Row]()
            for place in range(random.randint(0, 9)):
                time += random.randint(0, 3)
                rows.append((max(time - random.randint(0, MAX_DELAY), newest - MAX_DELAY), 100 * len(files) + place))
                newest = max(newest, rows[-1][0])
            # Most files begin after all that appeared before, some as far back as is allowed, and their clocks are not one.
            changed += random.randint(-5, 10)
            files.append([n for _, n in rows])
            folder.arrive(rows, changed=changed)
        else:
            readers.disturb(random, polls=0.64, saves=0.14, shares=0.12, most_rows=6)
    return files, readers.drain()
