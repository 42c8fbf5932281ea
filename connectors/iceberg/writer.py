"""The writer of Parquet files for an Iceberg table.

Columns carry the table's field ids, so a file stays right when columns are renamed. New columns are added to the table before the
first row with them is written; rows only become part of the table with their checkpoint. Each attempt of a worker has names of its
own for its files: a worker that was declared lost, and goes on, overwrites none.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.batch import Batch
from ...engine.errors import ConnectorError
from ...engine.sink import SinkWriter
from ...engine.types.casting import unchanged
from ..files.one_schema import fitted, settled
from ..formats.parquet_sink import ParquetEncoder
from .address import TableAddress, library_errors
from .committing import WrittenFile
from .schemas import Shape, shape_for
from .tables import check_same

if TYPE_CHECKING:
    from pyiceberg.table import Table

ROWS_PER_GROUP = 131_072

_FILE_BYTES = "write.target-file-size-bytes"

MOST_BYTES = 512 << 20
"""The size at which a file is closed, unless the table says another."""


class IcebergWriter(SinkWriter):
    """One worker's files: a new one for each checkpoint, and after each `MOST_BYTES`. `table_id`: the table's id."""

    def __init__(self, address: TableAddress, run: str, table_id: str, index: int) -> None:
        self._address, self._run, self._table_id = address, run, table_id
        self._stem, self._count = f"{run}-{index:05d}-{uuid.uuid4().hex[:12]}", 0
        self._schema: pa.Schema | None = None
        self._shape: Shape | None = None
        self._table: Table | None = None
        self._open: _OpenFile | None = None
        self._closed: list[WrittenFile] = []

    def write(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        with self._explained():
            self._settle(batch.rows.schema)
            assert self._schema is not None
            assert self._shape is not None
            assert self._table is not None
            rows = self._stored(fitted(batch.rows, self._schema, self._address.operator), self._shape)
            if self._open is None:
                self._open = _OpenFile(self._table, f"{self._stem}-{self._count:05d}.parquet", self._shape.written)
                self._count += 1
            self._open.encoder.write(rows)
            if self._open.size >= int(self._table.properties.get(_FILE_BYTES, MOST_BYTES)):
                self._close_file()

    def prepare(self, checkpoint: int) -> list[Any]:
        with self._explained():
            self._close_file()
        files, self._closed = self._closed, []
        return [{"files": [file.entry() for file in files]}] if files else []

    def close(self) -> None:
        if self._open is not None:
            self._open.abandon()
        left = [file.location for file in self._closed] + ([self._open.location] if self._open is not None else [])
        for location in left:
            assert self._table is not None
            with contextlib.suppress(*library_errors()):
                self._table.io.delete(location)
        self._open, self._closed = None, []
        self._address.close()

    def _settle(self, schema: pa.Schema) -> None:
        """Find the columns of the table for rows of a schema. A change of a type begins a new file."""
        plain = pa.schema([(field.name, field.type) for field in schema])
        now = plain if self._schema is None else settled(self._schema, plain, self._address.operator)
        if self._schema is not None and now.equals(self._schema):
            return
        self._close_file()
        table, shape = shape_for(now, self._address)
        check_same(table, self._table_id, self._address)
        self._table, self._shape, self._schema = table, shape, now

    def _stored(self, rows: pa.RecordBatch, shape: Shape) -> pa.RecordBatch:
        columns = []
        for field, held in zip(shape.written, shape.held, strict=True):
            column = rows.column(field.name)
            try:
                column = unchanged(column, held)
            except pa.ArrowException as error:
                raise ConnectorError(
                    f"operator `{self._address.operator}`: column `{field.name}` can't be {held} in {self._address}: {error}; round or "
                    "cast() it first"
                ) from error
            if not field.nullable and column.null_count:
                raise ConnectorError(f"operator `{self._address.operator}`: column `{field.name}` of {self._address} is required, got None")
            columns.append(column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=shape.written)

    def _close_file(self) -> None:
        if self._open is not None:
            rows, size = self._open.finish()
            self._closed.append(WrittenFile(self._table_id, self._run, self._open.location, rows, size))
            self._open = None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except library_errors() as error:
            raise self._address.error("can't be written", error) from error


class _OpenFile:
    """A file of the table that is being written."""

    def __init__(self, table: Table, name: str, schema: pa.Schema) -> None:
        self.location = table.location_provider().new_data_location(name)
        self._output = table.io.new_output(self.location)
        self._stream = self._output.create()
        self._writer = pq.ParquetWriter(self._stream, schema, compression="zstd", store_schema=False, store_decimal_as_integer=True)
        self.encoder = ParquetEncoder(self._writer, ROWS_PER_GROUP)

    @property
    def size(self) -> int:
        """The bytes in the file so far, without rows that wait for a full row group."""
        return int(self._stream.tell())

    def finish(self) -> tuple[int, int]:
        """Complete the file; return its rows and bytes."""
        self.encoder.finish()
        self._stream.close()
        return int(self._writer.writer.metadata.num_rows), len(self._output)

    def abandon(self) -> None:
        """Close the file in any state."""
        with contextlib.suppress(*library_errors()):
            self.encoder.finish()
        with contextlib.suppress(*library_errors()):
            self._stream.close()
