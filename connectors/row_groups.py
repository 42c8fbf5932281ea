"""Parquet files as splits: open a range of row groups, and bound its event times by the file's statistics without reading it.

>>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
>>> path = tempfile.mkdtemp() + "/a.parquet"
>>> pq.write_table(pa.table({"ts": [3, 1, 2]}), path)
>>> with open_parquet(path, "read") as file:
...     time_bounds(file.metadata, EventTime("ts", unit="us"))
(1, 3)
>>> [batch.num_rows for batch in read_row_groups(Split(path, 0), 2, operator="read")]
[2, 1]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..engine.errors import ConnectorError
from ..engine.protocol.elements import MAX_TIME, MIN_TIME
from ..engine.time.event_time import EventTime
from .remote import is_remote, open_remote
from .splits import Split

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


@contextmanager
def open_parquet(path: str, operator: str) -> Iterator[pq.ParquetFile]:
    """The Parquet file at `path`, memory mapped if it is local.

    Raises ConnectorError if it is missing or not Parquet, also while it is read.
    """
    try:
        if is_remote(path):
            with open_remote(path) as source, pq.ParquetFile(source) as file:
                yield file
        else:
            with pq.ParquetFile(path, memory_map=True) as file:
                yield file
    except FileNotFoundError as error:
        raise ConnectorError(f"operator `{operator}`: {path} does not exist (any more)") from error
    except (pa.ArrowException, OSError) as error:
        raise ConnectorError(f"operator `{operator}`: {path} can't be read as Parquet: {error}") from error


def read_row_groups(split: Split, batch_rows: int, *, operator: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Rows of the split in file order, in batches of at most `batch_rows`; all columns unless `columns` names some.

    Raises ConnectorError naming the file if it is missing or corrupt.
    """
    with open_parquet(split.path, operator) as file:
        first, last = split.row_groups or (0, file.num_row_groups)
        names = None if columns is None else list(columns)
        yield from file.iter_batches(batch_size=batch_rows, row_groups=list(range(first, last)), columns=names, use_threads=False)


def time_bounds(
    metadata: pq.FileMetaData, event_time: EventTime, row_groups: tuple[int, int] | None = None
) -> tuple[int | None, int | None]:
    """Smallest and largest event time (microseconds) in a half-open range of row groups, by their statistics; None where they have none.

    A range without rows doesn't hold event time back: its bounds are `MAX_TIME, MIN_TIME`.
    """
    first, last = row_groups or (0, metadata.num_row_groups)
    column = _leaf(metadata, event_time.column)
    if column is None:
        return None, None
    low, high = MAX_TIME, MIN_TIME
    for number in range(first, last):
        group = metadata.row_group(number)
        if group.num_rows == 0:
            continue
        bounds = _group_bounds(group.column(column), metadata.schema.column(column), event_time)
        if bounds is None:
            return None, None
        low, high = min(low, bounds[0]), max(high, bounds[1])
    return low, high


def _leaf(metadata: pq.FileMetaData, name: str) -> int | None:
    return next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name), None)


def _group_bounds(chunk: Any, column: Any, event_time: EventTime) -> tuple[int, int] | None:
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return None
    logical = json.loads(column.logical_type.to_json())
    if logical["Type"] == "Timestamp":
        # The raw integers: as Python values nanoseconds would be lost, and a timestamp("s") column is stored in milliseconds.
        unit = _UNITS[logical["timeUnit"]]
        values = pa.array([statistics.min_raw, statistics.max_raw], pa.int64()).view(pa.timestamp(unit))
    elif logical["Type"] == "Date":
        values = pa.array([statistics.min, statistics.max], pa.date32())
    elif isinstance(statistics.min, int):
        values = pa.array([statistics.min, statistics.max])
    else:
        return None
    if not event_time.fits(values):  # the error names the row when it is read
        return None
    low, high = event_time.to_microseconds(values).tolist()
    return low, high
