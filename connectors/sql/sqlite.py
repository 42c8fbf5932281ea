"""A table in a SQLite file.

>>> import tempfile
>>> path = tempfile.mkdtemp() + "/shop.db"
>>> _ = sqlite3.connect(path).execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, n INTEGER)")
>>> table = SqliteTable(TableTarget("write_sql", "orders", key=("id",)), path)
>>> table.begin("job/orders", "ab12")
>>> for _ in range(2):
...     table.commit("job/orders", "ab12", 1, [pa.record_batch({"id": [1, 2, 1], "n": [10, 20, 30]})])
>>> sqlite3.connect(path).execute("SELECT * FROM orders").fetchall()
[(1, 30), (2, 20)]
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from ...engine.weights import WEIGHT
from ..formats.json_rows import plain_values
from .table import MARKERS, SECONDS, SqlTable, TableTarget


class SqliteTable(SqlTable):
    """A table in the SQLite file at `path`, which must exist. Times, dates and decimals are written as text, bools as 0 and 1."""

    def __init__(self, target: TableTarget, path: str) -> None:
        super().__init__(target)
        self._path = path

    def begin(self, sink: str, run: str) -> None:
        with self._transaction() as database:
            there = self._columns(database)
            if not there:
                self.fail(f"{self._path} has no table `{self.target.table}`; create it")
            problem = self.target.problem(there)
            if problem is not None:
                self.fail(problem)
            if self.target.key and not self._is_unique(database):
                self.fail_without_index()
            database.execute(f"CREATE TABLE IF NOT EXISTS {MARKERS} (sink TEXT, run TEXT, checkpoint INTEGER, PRIMARY KEY (sink, run))")
            database.execute(f"INSERT INTO {MARKERS} VALUES (?, ?, 0)", (sink, run))

    def commit(self, sink: str, run: str, checkpoint: int, rows: Iterable[pa.RecordBatch]) -> None:
        with self._transaction() as database:
            of_run = (sink, run)
            found = database.execute(f"SELECT checkpoint FROM {MARKERS} WHERE sink = ? AND run = ?", of_run).fetchone()
            if found is None:
                self.fail_without_marker(run, checkpoint)
            if found[0] >= checkpoint:
                return
            there = self._columns(database)
            for batch in rows:
                if WEIGHT in batch.schema.names:
                    keys = [batch.column(name) for name in self.target.key]
                    database.executemany(self._delete(), zip(*map(_values, keys), strict=True))
                    continue
                self.check_columns(batch, tuple(there))
                database.executemany(self._insert(batch.schema.names), zip(*map(_values, batch.columns), strict=True))
            database.execute(f"UPDATE {MARKERS} SET checkpoint = ? WHERE sink = ? AND run = ?", (checkpoint, *of_run))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if not Path(self._path).exists():
            self.fail(f"there is no database {self._path}; create it and its table")
        try:
            uri = f"file:{quote(self._path)}?mode=rw"
            with closing(sqlite3.connect(uri, timeout=SECONDS, isolation_level=None, uri=True)) as database:
                database.execute("BEGIN IMMEDIATE")
                try:
                    yield database
                except BaseException:
                    database.execute("ROLLBACK")
                    raise
                database.execute("COMMIT")
        except (sqlite3.Error, OverflowError) as error:
            self.fail(f"{self._path}, table `{self.target.table}`: {error}", error)

    def _columns(self, database: sqlite3.Connection) -> dict[str, object]:
        return {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({_quoted(self.target.table)})")}

    def _is_unique(self, database: sqlite3.Connection) -> bool:
        table = _quoted(self.target.table)
        primary = {name for _, name, _, _, _, place in database.execute(f"PRAGMA table_info({table})") if place}
        indexes = [name for _, name, unique, *_ in database.execute(f"PRAGMA index_list({table})") if unique]
        found = [{column for _, _, column in database.execute(f"PRAGMA index_info({_quoted(name)})")} for name in indexes]
        return set(self.target.key) in (primary, *found)

    def _delete(self) -> str:
        keys = " AND ".join(f"{_quoted(name)} = ?" for name in self.target.key)
        return f"DELETE FROM {_quoted(self.target.table)} WHERE {keys}"

    def _insert(self, names: list[str]) -> str:
        columns = ", ".join(map(_quoted, names))
        insert = f"INSERT INTO {_quoted(self.target.table)} ({columns}) VALUES ({', '.join('?' * len(names))})"
        return insert + replacing(self.target, names, _quoted)


def replacing(target: TableTarget, names: Iterable[str], quoted: Any) -> str:
    """Return the end of an INSERT that replaces the row of its key, in the SQL that SQLite shares with PostgreSQL."""
    if not target.key:
        return ""
    others = [name for name in names if name not in target.key]
    keys = ", ".join(map(quoted, target.key))
    if not others:
        return f" ON CONFLICT ({keys}) DO NOTHING"
    sets = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
    newer = "" if target.version is None else f" WHERE excluded.{quoted(target.version)} >= {quoted(target.table)}.{quoted(target.version)}"
    return f" ON CONFLICT ({keys}) DO UPDATE SET {sets}{newer}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_decimal(column.type):
        return list(column.cast(pa.string()).to_pylist())
    return plain_values(column)
