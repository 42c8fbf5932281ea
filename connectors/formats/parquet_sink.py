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

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.errors import FlowError
from ..files.file_sink import Encoder, FileSink

BYTES_PER_ROW_GROUP = 128 << 20
"""The bytes at which a row group is written, even if it has few rows."""


def write_parquet(
    path: str | Path,
    *,
    compression: str = "zstd",
    rows_per_group: int = 131_072,
    overwrite: bool = False,
    append: bool = False,
    name: str = "write_parquet",
) -> ParquetSink:
    """Write rows as Parquet files in the folder `path`, one file per worker and checkpoint, exactly once.

    `compression` is "zstd", "snappy", "lz4", "gzip", "brotli" or "none". A folder that isn't empty raises ConnectorError, unless
    `overwrite` deletes the part files in it at the start, or `append` keeps them. A column that changes its type midway raises
    ConnectorError; one that has been all null so far may get a type.
    """
    if compression not in ("zstd", "snappy", "lz4", "gzip", "brotli", "none"):
        raise FlowError(
            f'operator `{name}`: compression {compression!r} is unknown; use "zstd", "snappy", "lz4", "gzip", "brotli" or "none"'
        )
    if rows_per_group < 1:
        raise FlowError(f"operator `{name}`: rows_per_group is {rows_per_group}; it must be at least 1")
    return ParquetSink(path, compression, rows_per_group, overwrite, append, name)


class ParquetSink(FileSink):
    """The sink that `write_parquet` creates."""

    extension = ".parquet"

    def __init__(self, path: str | Path, compression: str, rows_per_group: int, overwrite: bool, append: bool, name: str) -> None:
        super().__init__(path, overwrite, append, name)
        self._compression, self._rows_per_group = compression, rows_per_group

    def check_type(self, kind: pa.DataType) -> str | None:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([("column", kind)])).close()
        except pa.ArrowException as error:
            return f"Parquet can't hold it ({error}); map it to a struct or a string"
        return None

    def encoder(self, file: BinaryIO, schema: pa.Schema) -> ParquetEncoder:
        return ParquetEncoder(pq.ParquetWriter(file, schema, compression=self._compression), self._rows_per_group)


class ParquetEncoder(Encoder):
    """An encoder that joins small batches into row groups, since a row group costs its reader a seek and every column a header."""

    def __init__(self, writer: pq.ParquetWriter, rows_per_group: int) -> None:
        self._writer, self._rows_per_group = writer, rows_per_group
        self._gathered: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._gathered.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= self._rows_per_group or self._bytes >= BYTES_PER_ROW_GROUP:
            self._flush()

    def finish(self) -> None:
        if self._gathered:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._gathered), row_group_size=self._rows)
        self._gathered, self._rows, self._bytes = [], 0, 0
