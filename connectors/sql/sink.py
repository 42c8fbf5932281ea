"""The sink into a table of a database: rows become visible with their checkpoint, each exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ...engine.batch import Batch
from ...engine.columns import Columns
from ...engine.errors import ConnectorError, FlowError, RecordError
from ...engine.secrets import is_secret
from ...engine.sink import SinkWriter
from ...engine.updates import Updates
from ...engine.weights import without_weights
from ...state.errors import StateError
from ..staged.net_changes import net_changes
from ..staged.staged_sink import StagedSink
from ..staged.staging import StagedFile, Staging, StagingPlace
from ..staged.staging_writer import StagingWriter
from .postgres import PostgresTable
from .sqlite import SqliteTable
from .table import SqlTable, TableTarget


def write_sql(
    url: str,
    table: str,
    *,
    mode: Literal["append", "upsert"] = "append",
    key: str | Sequence[str] = (),
    version: str | None = None,
    name: str = "write_sql",
) -> SqlSink:
    """Write rows into a table of PostgreSQL or SQLite, exactly once.

        counts.write(ef.write_sql(f"postgresql://me:{ef.secret('env:PG_PASSWORD')}@db/shop", "counts", mode="upsert", key="user"))

    `url`: "postgresql://user:password@host:port/database", with libpq's parameters after a question mark, or
    "sqlite:////path/of/file.db" (three slashes before a path that is relative to the folder of the program). Keep a password, or the
    whole address, out of the program with `ef.secret`. PostgreSQL needs
    `pip install 'evenflow[postgres]'`. The table must exist; columns of it that rows lack get their defaults.

    With `mode="upsert"` a row replaces the one with the same `key`, one or several columns of a primary key or a unique index. Of a
    running aggregate, the table has the present row of each group, and rows of groups that are gone, or that a filter no longer
    passes, are deleted; `key` must contain the aggregate's keys. A null in a key stops the job. Of other streams, the last row of a
    key within a checkpoint counts. A key that moves to another worker meanwhile may have rows from both, whose order is unknown: give
    `version`, a column that never falls for a key, such as a count or a time, and a row with a smaller one replaces nothing. With
    `version` no row is deleted.

    Rows are staged in the checkpoint folder, and written when the checkpoint is complete, in one transaction that also records
    the checkpoint in the table `evenflow_commits`, which the sink creates next to its own. SQLite's file must be on a disk that
    the job's coordinator and driver share.

    PostgreSQL's times have microseconds: nanoseconds end the job.

    Raises FlowError for wrong arguments. Starting the flow raises ConnectorError if there is no such database or table, or it
    can't be written; a row that the table rejects stops the job, with none of its checkpoint's rows in the table.
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    if mode not in ("append", "upsert"):
        raise FlowError(f'operator `{name}`: mode={mode!r}; expected "append" or "upsert"')
    if (mode == "upsert") != bool(keys):
        raise FlowError(f'operator `{name}`: mode="upsert" goes with key=, the columns that identify the row to replace')
    if version is not None and not keys:
        raise FlowError(f'operator `{name}`: version= goes with mode="upsert"')
    if not isinstance(table, str) or not table:
        raise FlowError(f"operator `{name}`: table is {table!r}; it must be a table's name")
    return SqlSink(_table(url, TableTarget(name, table, keys, version)))


def _table(url: str, target: TableTarget) -> SqlTable:
    scheme, found, rest = str(url).partition("://")
    if (found and scheme in ("postgresql", "postgres")) or is_secret(str(url)):
        return PostgresTable(target, url)
    if found and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return SqliteTable(target, str(Path(unquote(rest[1:])).absolute()))
    raise FlowError(f"operator `{target.operator}`: expected a url such as postgresql://user@host/database or sqlite:////path/of/file.db")


class SqlSink(StagedSink):
    """The sink that `write_sql` creates."""

    guarantee = "exactly once (rows are in the table when the checkpoint that holds them completes)"

    def __init__(self, table: SqlTable) -> None:
        super().__init__(table.target.operator, table.target.table)
        self._table = table
        self.reads_weights = bool(table.target.key) and table.target.version is None

    def problem(self, columns: Columns) -> str | None:
        return self._table.target.missing_in(columns)

    def problem_of(self, updates: Updates | None) -> str | None:
        return None if updates is None else self._table.target.other_key(updates)

    def start(self) -> None:
        super().start()
        self._table.begin(self._identity, self.run)

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return StagingWriter(partial(_rows, self._table.target), self.place, self.name, self.file_rows, self.file_bytes)

    def write_staged(self, checkpoint: int, place: StagingPlace, files: Sequence[StagedFile]) -> None:
        rows = self._read(Staging(place.staging), files)
        self._table.commit(place.sink, place.run, checkpoint, net_changes(rows, self._table.target.key))

    def _read(self, staging: Staging, files: Sequence[StagedFile]) -> Iterator[pa.RecordBatch]:
        try:
            for file in sorted(files, key=lambda file: file.name):
                for _, alike in groupby(staging.read(file), key=lambda batch: batch.schema):
                    yield from pa.Table.from_batches(list(alike)).combine_chunks().to_batches()
        except (OSError, StateError) as error:
            raise ConnectorError(f"operator `{self.name}`: rows that were staged for `{self._target}` can't be read: {error}") from error


def _rows(target: TableTarget, batch: Batch) -> pa.RecordBatch:
    """Return the rows to stage. Raises RecordError for a null in a key: to SQL nulls aren't equal, so nothing would replace the row."""
    for name in target.key:
        column = batch.rows.column(name)
        if column.null_count:
            lost = batch.rows.slice(pc.index(column.is_null(), True).as_py(), 1)
            problem = f"column `{name}` of the key is null, so no row could replace this one; filter such rows out, or use fill_null"
            raise RecordError(target.operator, problem, record=Batch(without_weights(lost)).to_rows()[0])
    return batch.rows
