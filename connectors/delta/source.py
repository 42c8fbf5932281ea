"""Sources of Delta Lake tables: the files of one version, and optionally those that later versions add."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...engine.errors import ConnectorError, FlowError
from ...engine.protocol.elements import MAX_TIME
from ...engine.source import SourceReader
from ...engine.time.duration import Duration, seconds
from ...engine.time.event_time import EventTime
from ...engine.types.casting import unchanged
from ..files.remote import local_folder
from ..files.splits import Split
from ..followed.versions import VersionsReader, share_out_versions
from ..formats.parquet import ParquetSource
from ..formats.row_groups import open_parquet, read_row_groups, time_bounds
from ..quiet import FOLLOWED, event_time_of, idle_advice
from .log import CAN_READ, DeltaLog, Version
from .table import check_installed, open_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

_MAPPING = "delta.columnMapping.mode"


def read_delta(
    path: str | Path,
    *,
    version: int | None = None,
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    idle_after: Duration | None = None,
    columns: Sequence[str] | None = None,
    follow: bool = False,
    poll_every: Duration = "1s",
    skip_changes: bool = False,
    name: str = "read_delta",
) -> DeltaSource:
    """Read the rows of the Delta Lake table in the folder `path`, as it is when the job starts, or at `version`. The stream ends
    with the last row.

    `event_time`, `unit`, `max_delay` and `columns` are as in `read_parquet`. Columns have the table's types; a file that was
    written before a column was added has nulls there. A job that resumes from a checkpoint reads the same version only if
    `version` is given. Needs `pip install 'evenflow[delta]'`.

    With `follow=True` the stream continues with the rows that later versions add, each once, in the order of the versions, until
    the job is stopped. The table's log is read every `poll_every`. Versions that only rearrange rows (OPTIMIZE) add none. One
    that deletes or changes existing rows (DELETE, UPDATE, MERGE, overwrite) fails the job, unless `skip_changes` is True: then
    such versions are skipped, including the rows that they add, as by Spark's `skipChangeCommits`. Rows may be up to `max_delay`
    older than rows of earlier versions. `idle_after` is as in `read_parquet`.

    The start of the job raises ConnectorError if there is no such table or version, if its files were removed (vacuumed), and for
    tables that are partitioned or have deletion vectors or mapped columns. While following, the job fails for new columns that
    the flow reads, changed types, and versions and files that were removed before they were read.
    """
    check_installed(name)
    spec = event_time_of(event_time, unit, max_delay, idle_after, name=name, ends=None if follow else FOLLOWED)
    folder = str(local_folder(path, name))
    if follow:
        return FollowedDeltaSource(folder, version, spec, columns, _above_zero(poll_every, name), skip_changes, name)
    if skip_changes:
        raise FlowError(f"operator `{name}`: skip_changes is for follow=True; a single version has no changes to skip")
    return DeltaSource(folder, version, spec, columns, name)


def _above_zero(poll_every: Duration, name: str) -> float:
    every = seconds(poll_every, "poll_every")
    if not every:
        raise FlowError(f"operator `{name}`: poll_every is {poll_every!r}; it must be above 0")
    return every


class DeltaSource(ParquetSource):
    """A source of the files of one version."""

    guarantee = "exactly once (seeks to the checkpointed file and row of one version of the table)"

    def __init__(self, path: str, version: int | None, event_time: EventTime | None, columns: Sequence[str] | None, name: str) -> None:
        super().__init__(path, event_time, columns, None, None, name)
        self._path, self._version = path, version

    def _table(self) -> DeltaTable:
        """Open the table at its version. Raises ConnectorError if it has features that the reader doesn't support."""
        table = open_table(self._path, self.name, self._version)
        metadata, features = table.metadata(), table.protocol().reader_features or ()
        self._check(self._path, tuple(metadata.partition_columns), metadata.configuration.get(_MAPPING), features)
        self._all = self._of_table(pa.schema(table.schema().to_arrow()))
        return table

    def _check(self, what: str, partitions: Sequence[str], mapping: str | None, features: Sequence[str]) -> None:
        problem = None
        if partitions:
            problem = f"is partitioned by {', '.join(partitions)}"
        if mapping not in (None, "none"):
            problem = "has mapped columns"
        unknown = sorted(set(features) - CAN_READ)
        if unknown:
            problem = f"has {', '.join(unknown)}"
        if problem is not None:
            raise ConnectorError(f"operator `{self.name}`: {what} {problem}, which isn't supported; read it with Spark and from_spark")

    def _of_table(self, columns: pa.Schema) -> pa.Schema:
        """Return those of the table's columns that the user asked for."""
        names = columns.names if self._columns is None else self._columns
        missing = next((name for name in names if name not in columns.names), None)
        if missing is not None:
            raise ConnectorError(f"operator `{self.name}`: {self._path} has no column `{missing}`; it has: {', '.join(columns.names)}")
        return pa.schema([(name, columns.field(name).type) for name in names])

    def _list(self, path: str) -> list[str]:
        table = self._table()
        files = self._files(table)
        if not files:
            raise ConnectorError(f"operator `{self.name}`: version {table.version()} of {path} has no rows")
        return files

    def _files(self, table: DeltaTable) -> list[str]:
        files = sorted(table.file_uris())
        gone = next((file for file in files if not Path(file).exists()), None)
        if gone is not None:
            raise ConnectorError(
                f"operator `{self.name}`: {gone} of version {table.version()} of {self._path} was removed, presumably vacuumed; read "
                "a newer "
                "version"
            )
        return files

    def _plan(self, files: Sequence[str]) -> list[Split]:
        self._settle()
        splits: list[Split] = []
        for path in files:
            with open_parquet(path, self.name) as file:
                splits += self._split(path, file.metadata, len(splits))
        return splits

    def _settle(self) -> None:
        """Determine the columns to read from the table's columns."""
        if self._event_time is not None:
            self._event_time.check(self._all, self.name)
        self._schema = self._to_read(self._all)

    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        for rows in read_row_groups(split, batch_rows, operator=self.name, columns=self._schema.names, int96="us"):
            columns = [self._column(rows, field, split.path) for field in self._schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, rows: pa.RecordBatch, field: pa.Field, path: str) -> pa.Array:
        """Return a column in the table's type; nulls if the file is older than the column."""
        if field.name not in rows.schema.names:
            return pa.nulls(rows.num_rows, field.type)
        try:
            return unchanged(rows.column(field.name), field.type)
        except pa.ArrowException as error:
            raise ConnectorError(
                f"operator `{self.name}`: column `{field.name}` of {path} isn't {field.type}, as the table says: {error}"
            ) from error


class FollowedDeltaSource(DeltaSource):
    """A source of the files of one version, and those that later versions add."""

    guarantee = "exactly once (seeks to the checkpointed version, file and row)"

    def __init__(
        self,
        path: str,
        version: int | None,
        event_time: EventTime | None,
        columns: Sequence[str] | None,
        poll_every: float,
        skip_changes: bool,
        name: str,
    ) -> None:
        super().__init__(path, version, event_time, columns, name)
        self._poll_every, self._skip_changes = poll_every, skip_changes
        self._log = DeltaLog(path, name)
        self.idle_advice = idle_advice(event_time, "table")
        self._first: tuple[int, Sequence[str]] | None = None

    def start(self) -> None:
        table, folder = self._table(), os.path.realpath(self._path)
        self._first = table.version(), [os.path.relpath(os.path.realpath(file), folder) for file in self._files(table)]
        self._settle()

    def reader(self, index: int, parallelism: int) -> SourceReader:
        return VersionsReader(self, self._open, self._poll_every, index=index, parallelism=parallelism, event_time=self._event_time)

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        return share_out_versions(positions, parallelism, self.name)

    def earliest(self, position: Any) -> int:
        return MAX_TIME if self._event_time is None else int(position["watermark"])

    @property
    def first(self) -> tuple[int, Sequence[str]]:
        """The version at which reading begins, and its files."""
        if self._first is None:
            raise ConnectorError(f"operator `{self.name}`: start() looks at the table and must be called before reader()")
        return self._first

    def added(self, version: int) -> Sequence[str] | None:
        found = self._log.version(version)
        if found is None:
            return None
        what = f"version {version} of {self._path}"
        self._check(what, found.partitions, found.configuration.get(_MAPPING), found.features)
        if found.columns is not None:
            self._check_columns(found.columns, what)
        if not found.rewrites:
            return found.added
        if self._skip_changes:
            return ()
        raise self._changes(found, what)

    def peek(self, file: str) -> Split:
        assert self._event_time is not None
        path = self._existing_path(file)
        with open_parquet(path, self.name) as parquet:
            low, high = time_bounds(parquet.metadata, self._event_time)
        return Split(file, 0, min_time=low, max_time=high)

    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        return super()._open(Split(self._existing_path(split.path), split.ordinal), batch_rows)

    def _existing_path(self, file: str) -> str:
        """Return the path of a file of the table. Raises ConnectorError if it was removed."""
        path = Path(self._path, file)
        if not path.exists():
            raise ConnectorError(
                f"operator `{self.name}`: {path} was removed before it was read to its end, presumably vacuumed; begin without the "
                "checkpoint, "
                "and keep files for longer"
            )
        return str(path)

    def _check_columns(self, columns: pa.Schema, what: str) -> None:
        """Raise ConnectorError if the rows from this version on lack the columns that are read."""
        changed = [field for field in self._schema if field.name not in columns.names or columns.field(field.name).type != field.type]
        if changed:
            now = columns.field(changed[0].name).type if changed[0].name in columns.names else "gone"
            raise ConnectorError(
                f"operator `{self.name}`: column `{changed[0].name}` was {changed[0].type}, and is {now} in {what}; begin without the "
                "checkpoint"
            )
        new = [name for name in columns.names if name not in self._all.names]
        if new and self._columns is None and self.needed is None:
            raise ConnectorError(
                f"operator `{self.name}`: {what} adds the column `{new[0]}`; start the job again from its checkpoint to read it (earlier "
                f"rows have nulls), or omit it: columns={self._all.names}"
            )

    def _changes(self, version: Version, what: str) -> ConnectorError:
        return ConnectorError(
            f"operator `{self.name}`: {what} deletes or changes existing rows ({version.operation}), and a stream can't take rows "
            "back; skip_changes=True skips such versions, including the rows that they add"
        )
