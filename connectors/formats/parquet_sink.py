"""The sink of Parquet files, which become visible with their checkpoint.

>>> import tempfile
>>> import pyarrow as pa, pyarrow.parquet as pq
>>> from evenflow.engine.batch import Batch
>>> folder = tempfile.mkdtemp()
>>> sink = write_parquet(folder)
>>> sink.start()
>>> writer = sink.writer(0, 1)
>>> writer.write(Batch(pa.record_batch({"n": [1, 2]})))
>>> sink.commit(1, writer.prepare(1))
[]
>>> pq.read_table(folder).to_pylist()
[{'n': 1}, {'n': 2}]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.errors import FlowError
from ...engine.time.duration import Duration
from ..files.file_sink import Encoder, FileSink
from ..files.layout import Layout, layout_of

BYTES_PER_ROW_GROUP, BYTES_PER_ROW_GROUP_OF_MANY = 128 << 20, 8 << 20
"""The bytes at which a row group is written, even if it has few rows; with partitions many parts gather rows at once."""


def write_parquet(
    path: str | Path,
    *,
    compression: str = "zstd",
    rows_per_group: int = 131_072,
    partition_by: str | Sequence[str] = (),
    roll_bytes: int | None = None,
    roll_after: Duration | None = None,
    overwrite: bool = False,
    append: bool = False,
    name: str = "write_parquet",
) -> ParquetSink:
    """Write rows as Parquet files in the folder `path`, one file per worker and checkpoint, exactly once.

        counts.write(ef.write_parquet("s3://bucket/counts", partition_by=("region", "day")))

    `path` is a folder that all workers share, or the URL of one in an object store (`s3://`, `gs://`, `abfs://`), with the package of
    its protocol. A file appears when the checkpoint that holds it completes. `compression` is "zstd", "snappy", "lz4", "gzip",
    "brotli" or "none".

    `partition_by` names columns of texts, integers, booleans or dates. Rows with the same values go into one folder,
    `region=eu/day=2026-01-31`, as Hive and Spark write it; these columns are not in the files. A value of null is
    `__HIVE_DEFAULT_PARTITION__`; an empty text, which readers would take for null, raises RecordError. A worker has 64 files open,
    and closes the one that has waited longest for a row when it needs another. More than 10,000 files of a worker between two
    checkpoints raise ConnectorError.

    Every checkpoint closes all files. `roll_bytes` and `roll_after` close a file earlier: after the batch with which it has that many
    bytes, or when it has been open for that long and the worker gets a batch. So they limit the size of files when checkpoints are
    far apart, and can't make files larger or visible sooner; the interval of checkpoints does that.

    A folder that isn't empty raises ConnectorError, unless `overwrite` deletes the part files in it at the start, or `append` keeps
    them. A column that changes its type midway raises ConnectorError; one that has been all null so far may get a type.
    """
    if compression not in ("zstd", "snappy", "lz4", "gzip", "brotli", "none"):
        raise FlowError(
            f'operator `{name}`: compression {compression!r} is unknown; use "zstd", "snappy", "lz4", "gzip", "brotli" or "none"'
        )
    if rows_per_group < 1:
        raise FlowError(f"operator `{name}`: rows_per_group is {rows_per_group}; it must be at least 1")
    layout = layout_of(partition_by, roll_bytes, roll_after, name)
    return ParquetSink(path, compression, rows_per_group, overwrite, append, name, layout)


class ParquetSink(FileSink):
    """The sink that `write_parquet` creates."""

    extension = ".parquet"
    may_change = frozenset({"compression", "rows_per_group", "roll_bytes", "roll_after", "overwrite", "append"})

    def __init__(
        self, path: str | Path, compression: str, rows_per_group: int, overwrite: bool, append: bool, name: str, layout: Layout
    ) -> None:
        super().__init__(path, overwrite, append, name, layout)
        self._compression, self._rows_per_group = compression, rows_per_group

    def check_type(self, kind: pa.DataType) -> str | None:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([("column", kind)])).close()
        except pa.ArrowException as error:
            return f"Parquet can't hold it ({error}); map it to a struct or a string"
        return None

    def encoder(self, file: BinaryIO, schema: pa.Schema) -> ParquetEncoder:
        writer = pq.ParquetWriter(file, schema, compression=self._compression)
        most = BYTES_PER_ROW_GROUP_OF_MANY if self.layout.partition_by else BYTES_PER_ROW_GROUP
        return ParquetEncoder(writer, self._rows_per_group, most)


class ParquetEncoder(Encoder):
    """An encoder that joins small batches into row groups, since a row group costs its reader a seek and every column a header."""

    def __init__(self, writer: pq.ParquetWriter, rows_per_group: int, bytes_per_group: int = BYTES_PER_ROW_GROUP) -> None:
        self._writer, self._rows_per_group, self._bytes_per_group = writer, rows_per_group, bytes_per_group
        self._gathered: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._gathered.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= self._rows_per_group or self._bytes >= self._bytes_per_group:
            self._flush()

    def finish(self) -> None:
        if self._gathered:
            self._flush()
        self._writer.close()

    @property
    def waiting(self) -> int:
        return self._bytes

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._gathered), row_group_size=self._rows)
        self._gathered, self._rows, self._bytes = [], 0, 0
