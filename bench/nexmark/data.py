"""NexMark's events as files, Parquet and CSV, in a cache folder: a folder each for people, auctions and bids.

The Parquet files are in the order of events. The two CSV files of a stream have every other block of events, so that two readers go through
event time together: Flink reads the files of a folder in no particular order, and would drop the rows of earlier files as late. A CSV file
has no header, and times as whole milliseconds, which evenflow and Flink's `csv` format read alike.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from ...connectors.nexmark.numbering import Numbering, StreamName
from ...connectors.nexmark.schemas import SCHEMAS
from ...connectors.nexmark.source import STREAMS, nexmark
from ...connectors.share import Share
from ..harness.benchmark import Say

PARQUET_FILES, CSV_FILES = 10, 2
BLOCK = 1_000
"""Consecutive events in a CSV file. Blocks begin with a millisecond, so events of the same time are in one file."""

PIECE = 65_536
FORMATS = ("csv", "parquet")
CSV_SCHEMAS: Final = {
    stream: pa.schema([(field.name, pa.int64() if pa.types.is_timestamp(field.type) else field.type) for field in schema])
    for stream, schema in SCHEMAS.items()
}
"""The columns of the CSV files."""

LONG_TEXTS = ("extra", "description", "itemName")
"""Columns that hardly repeat within a page, so that their dictionary would be larger than they are."""


@dataclass(frozen=True, slots=True)
class EventFiles:
    """The files of `events` of all streams, in order, 10,000 per second of event time, in `folder / format / stream`."""

    folder: Path
    events: int

    def of(self, form: str, stream: StreamName) -> Path:
        """Return the folder of a stream's files."""
        return self.folder / form / stream

    def rows(self, stream: StreamName) -> int:
        """Return the number of rows of a stream."""
        return Numbering(stream).rows_before(self.events)


def files_of(cache: Path, events: int) -> EventFiles:
    """Return the paths of this many events, which may not exist."""
    return EventFiles(cache / f"nexmark-{events}", events)


def make(cache: Path, events: int, say: Say) -> EventFiles:
    """Write the files unless they exist, and report progress."""
    files = files_of(cache, events)
    if not (files.folder / "_SUCCESS").exists():
        shutil.rmtree(files.folder, ignore_errors=True)
        for stream in STREAMS:
            for form in FORMATS:
                files.of(form, stream).mkdir(parents=True)
            _write(files, stream, say)
        (files.folder / "_SUCCESS").touch()
    return files


def _write(files: EventFiles, stream: StreamName, say: Say) -> None:
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    coded = [name for name in SCHEMAS[stream].names if name not in LONG_TEXTS]
    with ExitStack() as stack:
        texts = [
            stack.enter_context(csv.CSVWriter(files.of("csv", stream) / f"{number:03}.csv", CSV_SCHEMAS[stream], write_options=options))
            for number in range(CSV_FILES)
        ]
        for number in range(PARQUET_FILES):
            first, last = (Numbering(stream).rows_before(files.events * n // PARQUET_FILES) for n in (number, number + 1))
            path = files.of("parquet", stream) / f"{number:03}.parquet"
            with pq.ParquetWriter(path, SCHEMAS[stream], use_dictionary=coded) as groups:
                for rows in pieces(stream, first, last):
                    groups.write_batch(rows, PIECE)
                    for turn, text in enumerate(texts):
                        its = rows.filter(pa.array(rows["seq"].to_numpy() // BLOCK % CSV_FILES == turn))
                        text.write_batch(its.cast(CSV_SCHEMAS[stream]))
            say(f"{stream}: {last:,} of {files.rows(stream):,} rows")


def pieces(stream: StreamName, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield rows `first` to `last` - 1 of a stream, as they are generated."""
    reader = nexmark(stream, rows_per_batch=PIECE).reader(0, 1)
    reader.seek(Share.of(0, 1).since(first).encode())
    while first < last:
        batch = reader.poll(last - first)
        assert batch is not None
        first += batch.num_rows
        yield batch.rows
