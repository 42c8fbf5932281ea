"""A table in PostgreSQL, written by COPY."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv

from ...engine.errors import FlowError
from ...engine.secrets import revealed_url
from ...engine.weights import WEIGHT
from .sqlite import replacing
from .table import MARKERS, SECONDS, SqlTable, TableTarget

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

_CSV = csv.WriteOptions(include_header=False, quoting_style="all_valid")
"""A null is empty, and any other value has quotes, so that COPY distinguishes an empty text from a null."""

_COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
_UNIQUE = """
    SELECT array_agg(attname::text) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
    WHERE indrelid = to_regclass(%s) AND indisunique AND indpred IS NULL GROUP BY indexrelid
"""


class PostgresTable(SqlTable):
    """A table in PostgreSQL. `url`: postgresql://user:password@host:port/database, with libpq's parameters after a question mark."""

    def __init__(self, target: TableTarget, url: str) -> None:
        super().__init__(target)
        self._url = url
        try:
            import psycopg  # noqa: F401 -- whether it can be imported is the question
        except ImportError as error:
            raise FlowError(
                f"operator `{target.operator}`: PostgreSQL needs the package psycopg: pip install 'evenflow[postgres]'"
            ) from error

    def begin(self, sink: str, run: str) -> None:
        with self._transaction() as cursor:
            there = self._columns(cursor)
            if not there:
                self.fail(f"there is no table `{self.target.table}`, or the user can't see it; create it, or name its schema: schema.table")
            problem = self.target.problem(dict.fromkeys(there))
            if problem is not None:
                self.fail(problem)
            unique = [set(names) for (names,) in _run(cursor, _UNIQUE, (self._table,))]
            if self.target.key and set(self.target.key) not in unique:
                self.fail_without_index()
            if _run(cursor, "SELECT to_regclass(%s)", (MARKERS,)).fetchone() == (None,):
                _run(cursor, f"CREATE TABLE IF NOT EXISTS {MARKERS} (sink text, run text, checkpoint bigint, PRIMARY KEY (sink, run))")
            _run(cursor, f"INSERT INTO {MARKERS} VALUES (%s, %s, 0)", (sink, run))
            # Missing rights show now and not at the first checkpoint.
            _run(cursor, f"INSERT INTO {self._table} SELECT * FROM {self._table} WHERE false")

    def commit(self, sink: str, run: str, checkpoint: int, rows: Iterable[pa.RecordBatch]) -> None:
        with self._transaction() as cursor:
            of_run = (sink, run)
            found = _run(cursor, f"SELECT checkpoint FROM {MARKERS} WHERE sink = %s AND run = %s FOR UPDATE", of_run).fetchone()
            if found is None:
                self.fail_without_marker(run, checkpoint)
            if found[0] >= checkpoint:
                return
            self._write(cursor, rows)
            _run(cursor, f"UPDATE {MARKERS} SET checkpoint = %s WHERE sink = %s AND run = %s", (checkpoint, *of_run))

    def _write(self, cursor: Cursor[Any], rows: Iterable[pa.RecordBatch]) -> None:
        there = self._columns(cursor)
        if not self.target.key:
            for batch in rows:
                self.check_columns(batch, there)
                self._copy(cursor, self._table, batch)
            return
        for names, alike in groupby(rows, key=lambda batch: batch.schema.names):
            if WEIGHT in names:
                self._delete(cursor, alike)
            else:
                self._replace(cursor, names, alike, there)

    def _delete(self, cursor: Cursor[Any], rows: Iterable[pa.RecordBatch]) -> None:
        names = [*self.target.key]
        columns = ", ".join(map(_quoted, names))
        _run(cursor, f"CREATE TEMP TABLE evenflow_gone ON COMMIT DROP AS SELECT {columns} FROM {self._table} WHERE false")
        for batch in rows:
            self._copy(cursor, "evenflow_gone", batch.select(names))
        alike = " AND ".join(f"old.{_quoted(name)} = gone.{_quoted(name)}" for name in names)
        _run(cursor, f"DELETE FROM {self._table} AS old USING evenflow_gone AS gone WHERE {alike}")
        _run(cursor, "DROP TABLE evenflow_gone")

    def _replace(self, cursor: Cursor[Any], names: list[str], rows: Iterable[pa.RecordBatch], there: Sequence[str]) -> None:
        """Write rows with these columns through a temporary table, so that each key's row is written once, however many there
        are.
        """
        number, columns = _quoted("evenflow row"), ", ".join(map(_quoted, names))
        for place, batch in enumerate(rows):
            self.check_columns(batch, there)
            if place == 0:
                _run(cursor, f"CREATE TEMP TABLE evenflow_rows ON COMMIT DROP AS SELECT {columns} FROM {self._table} WHERE false")
                _run(cursor, f"ALTER TABLE evenflow_rows ADD {number} bigserial")
            self._copy(cursor, "evenflow_rows", batch)
        keys = ", ".join(map(_quoted, self.target.key))
        newest = "" if self.target.version is None else f"{_quoted(self.target.version)} DESC, "
        last = f"SELECT DISTINCT ON ({keys}) {columns} FROM evenflow_rows ORDER BY {keys}, {newest}{number} DESC"
        _run(cursor, f"INSERT INTO {self._table} AS old ({columns}) {last}{self._replacing(names)}")
        _run(cursor, "DROP TABLE evenflow_rows")

    def _replacing(self, names: Iterable[str]) -> str:
        return replacing(TableTarget(self.target.operator, "old", self.target.key, self.target.version), names, _quoted)

    def _copy(self, cursor: Cursor[Any], table: str, batch: pa.RecordBatch) -> None:
        columns = ", ".join(map(_quoted, batch.schema.names))
        text = io.BytesIO()
        csv.write_csv(pa.record_batch([self._text(batch, name) for name in batch.schema.names], names=batch.schema.names), text, _CSV)
        with cursor.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT csv)".encode()) as copy:
            copy.write(text.getbuffer())

    def _text(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """Convert a column to values that PostgreSQL can read once Arrow has written them."""
        column = batch.column(name)
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.dictionary_decode()
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
            return pa.array([None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()], pa.string())
        elif pa.types.is_timestamp(kind) and kind.unit == "ns":
            return self._in_microseconds(column, name, pa.timestamp("us", kind.tz))
        elif pa.types.is_time64(kind) and kind.unit == "ns":
            return self._in_microseconds(column, name, pa.time64("us"))
        elif pa.types.is_nested(kind) or pa.types.is_duration(kind):
            self.fail(f"column `{name}` is {kind}, which is not written into tables; map it to a text, for example of JSON")
        return column

    def _in_microseconds(self, column: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid as error:
            self.fail(f"column `{name}` loses digits in PostgreSQL's microseconds ({error}); round it first", error)

    @property
    def _table(self) -> str:
        return ".".join(map(_quoted, self.target.table.split(".")))

    def _columns(self, cursor: Cursor[Any]) -> tuple[str, ...]:
        return tuple(name for (name,) in _run(cursor, _COLUMNS, (self._table,)))

    @contextmanager
    def _transaction(self) -> Iterator[Cursor[Any]]:
        import psycopg

        try:
            with self._connect() as connection, connection.cursor() as cursor:
                _run(cursor, f"SET LOCAL lock_timeout = '{SECONDS}s'")
                yield cursor
        except psycopg.Error as error:
            self.fail(f"table `{self.target.table}`: {_message(error)}", error)

    def _connect(self) -> Connection[Any]:
        import psycopg

        try:
            url = revealed_url(self._url)
            return psycopg.connect(url, connect_timeout=SECONDS // 2, keepalives_idle=SECONDS, tcp_user_timeout=SECONDS * 1000)
        except psycopg.Error as error:
            self.fail(f"no connection to the database: {_message(error)}; check the address, the user and the password", error)


def _run(cursor: Cursor[Any], query: str, values: Sequence[object] = ()) -> Cursor[Any]:
    """Execute a query. Values are parameters; names in `query` are quoted."""
    return cursor.execute(query.encode(), values or None)


def _message(error: Exception) -> str:
    return " ".join(str(error).split())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
