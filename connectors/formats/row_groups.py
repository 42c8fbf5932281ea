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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.time.event_time import EventTime
from ..files.remote import is_remote, open_remote
from ..files.splits import Split
from .int96 import checked_int96, int96_columns

LENGTH = 4
"""The bytes of the length before each text that is not in a dictionary."""

Opener = Callable[[str], AbstractContextManager[Any]]
"""Opens a file at a path for reading. Raises OSError."""

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


@contextmanager
def open_parquet(path: str, operator: str, opener: Opener | None = None, **options: Any) -> Iterator[pq.ParquetFile]:
    """Open the Parquet file at `path` with these options of Arrow's, by `opener` if there is one, else memory mapped if it is local.

    Raises ConnectorError if it is missing or not Parquet, also while it is read.
    """
    try:
        if opener is not None or is_remote(path):
            with (opener or open_remote)(path) as source, pq.ParquetFile(source, **options) as file:
                yield file
        else:
            with pq.ParquetFile(path, memory_map=True, **options) as file:
                yield file
    except FileNotFoundError as error:
        raise ConnectorError(f"operator `{operator}`: {path} does not exist, or no longer exists") from error
    except (pa.ArrowException, OSError) as error:
        raise ConnectorError(f"operator `{operator}`: {path} can't be read as Parquet: {error}") from error


def read_row_groups(
    split: Split,
    batch_rows: int,
    *,
    operator: str,
    columns: Sequence[str] | None = None,
    coded: Iterable[str] = (),
    int96: Literal["us", "ns"] = "ns",
    opener: Opener | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the split in file order, in batches of at most `batch_rows`; all columns unless `columns` names some.

    Columns of `coded` are dictionaries where the file stores them so. `int96`: the unit of times of the type INT96, which has none.
    Raises ConnectorError naming the file if it is missing or corrupt, and the column of such a time that the unit can't hold.
    """
    with ExitStack() as stack:
        file = stack.enter_context(open_parquet(split.path, operator, opener))
        groups = range(*(split.row_groups or (0, file.num_row_groups)))
        dictionaries = [name for name in coded if _has_dictionary(file.metadata, name, groups)]
        if dictionaries:
            file = stack.enter_context(open_parquet(split.path, operator, opener, metadata=file.metadata, read_dictionary=dictionaries))
        names = None if columns is None else list(columns)
        options = {"batch_size": batch_rows, "row_groups": list(groups), "use_threads": False}
        unitless = int96_columns(file.metadata, names)
        if not unitless:
            yield from file.iter_batches(columns=names, **options)
            return
        micros = stack.enter_context(open_parquet(split.path, operator, opener, metadata=file.metadata, coerce_int96_timestamp_unit="us"))
        pairs = zip(file.iter_batches(columns=names, **options), micros.iter_batches(columns=unitless, **options), strict=True)
        for rows, times in pairs:
            yield checked_int96(rows, times, int96, split.path, operator)


def _has_dictionary(metadata: pq.FileMetaData, name: str, groups: Iterable[int]) -> bool:
    """Return True if a column of texts has a dictionary for nearly all of its values.

    Other values are preceded by their length in four bytes, so a column that takes less per value can't have many of these.
    """
    column = _leaf(metadata, name)
    if column is None or metadata.schema.column(column).physical_type != "BYTE_ARRAY":
        return False
    chunks = [metadata.row_group(group).column(column) for group in groups]
    return all(chunk.has_dictionary_page and chunk.total_uncompressed_size < LENGTH * chunk.num_values for chunk in chunks)


def time_bounds(
    metadata: pq.FileMetaData, event_time: EventTime, row_groups: tuple[int, int] | None = None
) -> tuple[int | None, int | None]:
    """Return the smallest and largest event time (microseconds) in a half-open range of row groups, by their statistics; None
    without any.

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
