"""The bounded sources over random input, for tests that cover all sources."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.json import read_json
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.connectors.formats.text import read_text
from evenflow.connectors.generated.generate import generate
from evenflow.connectors.nexmark.source import nexmark
from evenflow.connectors.python.items import from_items
from evenflow.engine.source import Source

MAX_DELAY = 5
"""Milliseconds by which a row of `streams` may be older than one before it."""

GROUP = 30
"""The size of the groups of NexMark events that are out of order."""

Row = dict[str, int]
Build = Callable[[Path, list[list[Row]]], Source]
"""A function that returns a source of these rows, a list per file, from files in the folder."""

streams = st.lists(st.lists(st.integers(0, MAX_DELAY), max_size=12), min_size=1, max_size=5).map(
    lambda files: [
        [{"ts": 1_000 + 100 * number + place - delay, "n": 100 * number + place} for place, delay in enumerate(delays)]
        for number, delays in enumerate(files)
    ]
)


def items(folder: Path, files: list[list[Row]]) -> Source:
    return from_items([row for rows in files for row in rows], event_time="ts", max_delay=MAX_DELAY / 1000)


def parquet(folder: Path, files: list[list[Row]]) -> Source:
    schema = pa.schema({"ts": pa.int64(), "n": pa.int64()})
    for number, rows in enumerate(files):
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{number}.parquet", row_group_size=4)
    return read_parquet(folder, event_time="ts", max_delay=MAX_DELAY / 1000)


def csv(folder: Path, files: list[list[Row]]) -> Source:
    for number, rows in enumerate(files):
        lines = ["ts,n", *(f"{row['ts']},{row['n']}" for row in rows)]
        (folder / f"{number}.csv").write_text("\n".join(lines))
    return read_csv(folder, event_time="ts", max_delay=MAX_DELAY / 1000, schema={"ts": "int64", "n": "int64"})


def ndjson(folder: Path, files: list[list[Row]]) -> Source:
    for number, rows in enumerate(files):
        (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_json(folder, event_time="ts", max_delay=MAX_DELAY / 1000)


def text(folder: Path, files: list[list[Row]]) -> Source:
    for number, rows in enumerate(files):
        (folder / f"{number}.txt").write_text("".join(f"{row['n']}\n" for row in rows))
    return read_text(folder)


def generated(folder: Path, files: list[list[Row]]) -> Source:
    return generate(total=sum(map(len, files)), keys=7, zipf=1.2, max_delay=MAX_DELAY / 1000, seed=len(files))


def bids(folder: Path, files: list[list[Row]]) -> Source:
    return nexmark("bid", events=_events(files), event_rate=GROUP * 1000 / MAX_DELAY, out_of_order_group_size=GROUP, seed=len(files))


def started(build: Build, files: list[list[Row]], paths: pytest.TempPathFactory) -> Source:
    source = build(paths.mktemp("input"), files)
    source.start()
    return source


def expected(build: Build, files: list[list[Row]]) -> list[int]:
    rows = [row["n"] for file in files for row in file]
    if build is bids:
        numbers = (position // GROUP * GROUP + position * 953 % GROUP for position in range(_events(files)))
        return sorted(number for number in numbers if number % 50 >= 4)
    return list(range(len(rows))) if build is generated else rows


def _events(files: list[list[Row]]) -> int:
    return 2 * sum(map(len, files))


def number(row: dict[str, Any]) -> int:
    return int(row["seq"] if "seq" in row else row["n"] if "n" in row else row["item"])


def rows(source: Source) -> list[Row]:
    """Return all rows of a source with one reader."""
    source.start()
    reader, found = source.reader(0, 1), []
    while not reader.finished:
        batch = reader.poll(1000)
        found += [] if batch is None else batch.to_rows()
    return found
