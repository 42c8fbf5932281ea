"""The source of the files of one snapshot of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.errors import ConnectorError
from ...engine.time.event_time import EventTime
from ..files.splits import Split
from ..formats.parquet import ParquetSource
from ..formats.row_groups import open_parquet, read_row_groups, time_bounds
from .address import TableAddress
from .columns import TableColumns, columns_of, converted, mapped_names
from .snapshots import files_of
from .tables import check_format

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


class IcebergSource(ParquetSource):
    """A source of the files of one snapshot. `snapshot`: its id, None for the newest when the job starts."""

    guarantee = "exactly once (seeks to the checkpointed file and row of one snapshot of the table)"

    def __init__(self, address: TableAddress, snapshot: int | None, event_time: EventTime | None, columns: Sequence[str] | None) -> None:
        super().__init__(address.table, event_time, columns, None, None, address.operator)
        self._address, self._snapshot = address, snapshot
        self._found = TableColumns({}, None, frozenset())
        self._table: Table | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}

    def stop(self) -> None:
        self._address.close()

    def _load(self) -> Table:
        """Read the table as it is now."""
        table = self._table = self._address.load()
        check_format(table, self._address)
        self._found = replace(self._found, mapped=mapped_names(table))
        return table

    def _begin(self) -> tuple[Table, Snapshot | None]:
        """Find the snapshot to begin with, and the columns to read."""
        table = self._load()
        snapshot, schema = table.current_snapshot(), table.schema()
        if self._snapshot is not None:
            snapshot = table.snapshot_by_id(self._snapshot)
            if snapshot is None:
                known = ", ".join(str(each.snapshot_id) for each in table.snapshots()[-3:])
                raise ConnectorError(
                    f"operator `{self.name}`: {self._address} has no snapshot {self._snapshot}, or it has expired; the newest are: {known}"
                )
            schema = schema if self._continues or snapshot.schema_id is None else table.schemas()[snapshot.schema_id]
        self._found = columns_of(table, schema, self._columns, self._address)
        self._all = self._found.schema
        if self._event_time is not None:
            self._event_time.check(self._all, self.name)
        self._schema = self._to_read(self._all)
        return table, snapshot

    _continues = False
    """True if later snapshots are read too, with the columns that the table has now."""

    def _list(self, path: str) -> list[str]:
        table, snapshot = self._begin()
        with self._address.explained("can't be read"):
            return files_of(table, snapshot, self._address)

    def _plan(self, files: Sequence[str]) -> list[Split]:
        splits: list[Split] = []
        for path in files:
            with open_parquet(path, self.name, self._opened) as file:
                self._places(file.schema_arrow, path)
                splits += self._split(path, file.metadata, len(splits))
        return splits

    def _time_bounds(self, path: str, metadata: pq.FileMetaData, groups: tuple[int, int] | None) -> tuple[int | None, int | None]:
        if self._event_time is None:
            return None, None
        place = self._places(metadata.schema.to_arrow_schema(), path).get(self._event_time.column)
        return (None, None) if place is None else time_bounds(metadata, replace(self._event_time, column=place), groups)

    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        with open_parquet(split.path, self.name, self._opened) as file:
            places = self._places(file.schema_arrow, split.path)
        wanted = list(dict.fromkeys(places[name] for name in self._schema.names if name in places))
        wanted = wanted or file.schema_arrow.names[:1]  # a batch without columns has no rows
        batches = read_row_groups(split, batch_rows, operator=self.name, columns=wanted, int96="us", opener=self._opened)
        for rows in batches:
            columns = [self._column(rows, field, places.get(field.name), split.path) for field in self._schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _places(self, schema: pa.Schema, path: str) -> dict[str, str]:
        return self._found.places(schema, path, self._address)

    def _column(self, rows: pa.RecordBatch, field: pa.Field, place: str | None, path: str) -> pa.Array:
        """Return a column in the table's type; nulls if the file is older than the column."""
        if place is None:
            return pa.nulls(rows.num_rows, field.type)
        try:
            return converted(rows.column(place), field.type)
        except pa.ArrowException as error:
            raise ConnectorError(
                f"operator `{self.name}`: column `{field.name}` of {path} isn't {field.type}, as the table says: {error}"
            ) from error

    def _opened(self, path: str) -> AbstractContextManager[Any]:
        """Open a file of the table with the table's own access to its store."""
        table = self._table or self._load()
        return closing(table.io.new_input(path).open())
