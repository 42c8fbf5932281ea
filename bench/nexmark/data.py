"""NexMark's events as files, Parquet and CSV, in a cache folder: a folder each for people, auctions and bids, in the order of events.

A CSV file has no header, and times as whole milliseconds: what evenflow and Flink's `csv` format both read, and parse alike.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
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
from ...engine.errors import ConnectorError

FILES = 10
"""Files of a stream, each with the same number of events in a row."""

PIECE = 65_536
FORMATS = ("csv", "parquet")
CSV_SCHEMAS: Final = {
    stream: pa.schema([(field.name, pa.int64() if pa.types.is_timestamp(field.type) else field.type) for field in schema])
    for stream, schema in SCHEMAS.items()
}
"""The columns of the CSV files."""

LONG_TEXTS = ("extra", "description", "itemName")
"""They hardly repeat within a page, so a dictionary of them would be larger than they are."""


@dataclass(frozen=True, slots=True)
class EventFiles:
    """`folder / format / stream` has the files; `events` of all streams, in order, 10,000 per second of event time."""

    folder: Path
    events: int

    def of(self, form: str, stream: StreamName) -> Path:
        """The folder of a stream's files."""
        return self.folder / form / stream

    def rows(self, stream: StreamName) -> int:
        """How many rows a stream has."""
        return Numbering(stream).rows_before(self.events)


def find(cache: Path, events: int) -> EventFiles:
    """The files made earlier. Raises ConnectorError if there are none."""
    files = _named(cache, events)
    if not (files.folder / "_SUCCESS").exists():
        command = f"evenflow bench data nexmark --events {events} --folder {cache}"
        raise ConnectorError(f"no NexMark events in {files.folder}: make them with `{command}`")
    return files


def make(cache: Path, events: int, say: Callable[[str], None]) -> EventFiles:
    """The files, made now unless they are there; `say` hears of each that is complete."""
    files = _named(cache, events)
    if not (files.folder / "_SUCCESS").exists():
        shutil.rmtree(files.folder, ignore_errors=True)
        for stream in STREAMS:
            for form in FORMATS:
                files.of(form, stream).mkdir(parents=True)
            for number in range(FILES):
                rows = _write(files, stream, number)
                say(f"{stream}: file {number + 1} of {FILES}, {rows:,} rows")
        (files.folder / "_SUCCESS").touch()
    return files


def _named(cache: Path, events: int) -> EventFiles:
    return EventFiles(cache / f"nexmark-{events}", events)


def _write(files: EventFiles, stream: StreamName, number: int) -> int:
    """Write the file of that number in each format; returns its rows."""
    first, last = (Numbering(stream).rows_before(files.events * n // FILES) for n in (number, number + 1))
    text, columns = (files.of(form, stream) / f"{number:03}.{form}" for form in FORMATS)
    coded = [name for name in SCHEMAS[stream].names if name not in LONG_TEXTS]
    with (
        csv.CSVWriter(text, CSV_SCHEMAS[stream], write_options=csv.WriteOptions(include_header=False, quoting_style="none")) as lines,
        pq.ParquetWriter(columns, SCHEMAS[stream], use_dictionary=coded) as groups,
    ):
        for rows in _pieces(stream, first, last):
            lines.write_batch(rows.cast(CSV_SCHEMAS[stream]))
            groups.write_batch(rows, PIECE)
    return last - first


def _pieces(stream: StreamName, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Rows `first` to `last` - 1 of a stream."""
    reader = nexmark(stream, rows_per_batch=PIECE).reader(0, 1)
    reader.seek(Share.of(0, 1).since(first).encode())
    while first < last:
        batch = reader.poll(last - first)
        assert batch is not None
        first += batch.num_rows
        yield batch.rows
