"""Commits into tables of SQLite and PostgreSQL: rows and marker in one transaction."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.connectors.sql.postgres import PostgresTable
from evenflow.connectors.sql.sqlite import SqliteTable
from evenflow.connectors.sql.table import MARKERS, TableTarget

SINK = "job/orders"


class Sqlite:
    def __init__(self, path):
        self.path = str(path / "it's a shop.db")
        sqlite3.connect(self.path).close()

    def execute(self, sql):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            return database.execute(sql).fetchall()

    def table(self, name, **target):
        return SqliteTable(TableTarget("orders", name, **target), self.path)


class Postgres:
    def __init__(self, url):
        self.url = url

    def execute(self, sql):
        with psycopg.connect(self.url, autocommit=True) as database:
            cursor = database.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def table(self, name, **target):
        return PostgresTable(TableTarget("orders", name, **target), self.url)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    return Sqlite(tmp_path) if request.param == "sqlite" else Postgres(request.getfixturevalue("postgres").url)


@pytest.fixture
def name():
    return f'the "orders" of {uuid.uuid4().hex[:8]}'


@pytest.fixture
def run():
    return uuid.uuid4().hex[:12]


def orders(**columns):
    return pa.record_batch(columns)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def made(database, name, columns="id integer primary key, n integer", **target):
    database.execute(f"CREATE TABLE {quoted(name)} ({columns})")
    return database.table(name, **target)


def rows_of(database, name):
    return sorted(database.execute(f"SELECT * FROM {quoted(name)}"))


def test_rows_of_a_checkpoint_come_once_however_often_it_is_committed(database, name, run):
    table = made(database, name)
    table.begin(SINK, run)
    for _ in range(3):
        table.commit(SINK, run, 1, [orders(id=[1, 2], n=[10, 20]), orders(id=[3], n=[30])])
    assert rows_of(database, name) == [(1, 10), (2, 20), (3, 30)]


def test_checkpoints_follow_each_other_and_empty_ones_count_too(database, name, run):
    table = made(database, name)
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(id=[1], n=[10])])
    table.commit(SINK, run, 4, [])
    table.commit(SINK, run, 2, [orders(id=[2], n=[20])])
    assert rows_of(database, name) == [(1, 10)]
    assert database.execute(f"SELECT checkpoint FROM {MARKERS} WHERE run = '{run}'") == [(4,)]


def test_rows_replace_those_of_their_key_in_their_order(database, name, run):
    table = made(database, name, key=("id",))
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(id=[1, 2, 1], n=[10, 20, 11]), orders(n=[12], id=[1])])
    table.commit(SINK, run, 2, [orders(id=[2], n=[None])])
    assert dict(database.execute(f"SELECT * FROM {quoted(name)}")) == {1: 12, 2: None}


def test_row_with_an_older_version_replaces_nothing(database, name, run):
    table = made(database, name, "id integer primary key, n integer, at integer", key=("id",), version="at")
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(id=[1, 1, 1], n=[10, 30, 20], at=[1, 3, 2]), orders(id=[1], n=[25], at=[2])])
    assert rows_of(database, name) == [(1, 30, 3)]
    table.commit(SINK, run, 2, [orders(id=[1], n=[31], at=[3])])
    assert rows_of(database, name) == [(1, 31, 3)]


def test_key_of_several_columns_and_a_table_of_nothing_else(database, name, run):
    table = made(database, name, "a integer, b text, primary key (b, a)", key=("a", "b"))
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(a=[1, 1, 1], b=["x", "y", "x"])])
    assert rows_of(database, name) == [(1, "x"), (1, "y")]


def test_rows_that_the_table_refuses_leave_it_as_it_was(database, name, run):
    table = made(database, name, "id integer primary key, n integer not null")
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(id=[1], n=[10])])
    with pytest.raises(ef.ConnectorError, match=r"operator `orders`:.*(?i:null)"):
        table.commit(SINK, run, 2, [orders(id=[2], n=[20]), orders(id=[3], n=pa.array([None], pa.int64()))])
    with pytest.raises(ef.ConnectorError, match=r"(?i)unique"):
        table.commit(SINK, run, 2, [orders(id=[2, 1], n=[20, 30])])
    assert rows_of(database, name) == [(1, 10)]
    table.commit(SINK, run, 2, [orders(id=[2], n=[20])])
    assert rows_of(database, name) == [(1, 10), (2, 20)]


def test_marker_that_is_gone_is_an_error_that_says_what_to_do(database, name, run):
    table = made(database, name)
    table.begin(SINK, run)
    database.execute(f"DELETE FROM {MARKERS} WHERE run = '{run}'")
    with pytest.raises(ef.ConnectorError, match=rf"marker of run {run} is missing from table `{MARKERS}`.*put the row back"):
        table.commit(SINK, run, 1, [orders(id=[1], n=[10])])
    assert rows_of(database, name) == []


@pytest.mark.parametrize(
    ("columns", "target", "problem"),
    [
        ("id integer, n integer", {"key": ("id",)}, r"no primary key or unique index of .* has just the columns id"),
        ("id integer primary key, n integer", {"key": ("id", "n")}, r"no primary key or unique index"),
        ("id integer primary key", {"key": ("user",)}, r"has no column `user`; it has id"),
        ("id integer primary key", {"key": ("id",), "version": "at"}, r"has no column `at`; it has id"),
    ],
)
def test_table_that_does_not_support_upserts_is_refused(database, name, run, columns, target, problem):
    with pytest.raises(ef.ConnectorError, match=problem):
        made(database, name, columns, **target).begin(SINK, run)


def test_unique_index_will_do_in_place_of_a_primary_key(database, name, run):
    table = made(database, name, "id integer, n integer", key=("id",))
    database.execute(f"CREATE UNIQUE INDEX {quoted('of ' + name)} ON {quoted(name)} (id)")
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(id=[1, 1], n=[1, 2])])
    assert rows_of(database, name) == [(1, 2)]


def test_table_that_is_missing(database, run):
    with pytest.raises(ef.ConnectorError, match=r"no table `nowhere`"):
        database.table("nowhere").begin(SINK, run)


def test_column_that_the_table_has_not(database, name, run):
    table = made(database, name)
    table.begin(SINK, run)
    with pytest.raises(ef.ConnectorError, match=r"has no column `price`: it has id, n; add it, or select\(\) others"):
        table.commit(SINK, run, 1, [orders(id=[1], price=[2])])


def test_rows_without_a_column_of_the_key(database, name, run):
    table = made(database, name, key=("id",))
    table.begin(SINK, run)
    with pytest.raises(ef.ConnectorError, match=r"rows have no column `id`, which is part of the key; they have n"):
        table.commit(SINK, run, 1, [orders(n=[1])])


VALUES = {
    "t": ["", None, 'a "quoted", text\nof two lines'],
    "i": [1 << 40, None, -1],
    "f": [0.1, None, 1e300],
    "b": [True, None, False],
    "d": [date(2024, 2, 29), None, date(1, 1, 1)],
    "ts": [datetime(2024, 2, 29, 12, 0, 0, 123456), None, datetime(1960, 1, 1)],
    "tz": [datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC), None, datetime(1960, 1, 1, tzinfo=UTC)],
    "dec": [Decimal("1.10"), None, Decimal("-99999999.99")],
    "raw": [b"\x00\xff", None, b""],
}


def test_values_of_all_types_are_those_that_postgres_gives_back(postgres, name, run):
    database = Postgres(postgres.url)
    kinds = "t text, i bigint, f double precision, b boolean, d date, ts timestamp, tz timestamptz, dec numeric(10, 2), raw bytea"
    table = made(database, name, kinds)
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(**VALUES), orders(t=pa.array(["again"]).dictionary_encode(), i=pa.nulls(1))])
    expected = [*zip(*VALUES.values(), strict=True), ("again", *(None,) * 8)]
    assert database.execute(f"SELECT * FROM {quoted(name)}") == expected


def test_values_of_all_types_in_sqlite(tmp_path, name, run):
    database = Sqlite(tmp_path)
    table = made(database, name, ", ".join(VALUES))
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(**VALUES)])
    assert database.execute(f"SELECT * FROM {quoted(name)} LIMIT 1") == [
        ("", 1 << 40, 0.1, 1, "2024-02-29", "2024-02-29T12:00:00.123456", "2024-02-29T12:00:00.000001Z", "1.10", b"\x00\xff")
    ]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.duration("s")])
def test_types_that_tables_do_not_get(postgres, name, run, kind):
    table = made(Postgres(postgres.url), name, "x text")
    table.begin(SINK, run)
    with pytest.raises(ef.ConnectorError, match=r"column `x` is .*, which is not written into tables; map it to a text"):
        table.commit(SINK, run, 1, [orders(x=pa.nulls(1, kind))])


@pytest.mark.parametrize(
    ("kind", "of_table"), [(pa.timestamp("ns"), "timestamp"), (pa.timestamp("ns", "UTC"), "timestamptz"), (pa.time64("ns"), "time")]
)
def test_nanoseconds_that_postgres_would_drop_are_refused(postgres, name, run, kind, of_table):
    database = Postgres(postgres.url)
    table = made(database, name, f"x {of_table}")
    table.begin(SINK, run)
    table.commit(SINK, run, 1, [orders(x=pa.array([1_000, None], kind))])
    assert database.execute(f"SELECT count(*), extract(microsecond FROM max(x)) FROM {quoted(name)}") == [(2, 1)]
    with pytest.raises(ef.ConnectorError, match=r"column `x` loses digits in PostgreSQL's microseconds .*; round it first"):
        table.commit(SINK, run, 2, [orders(x=pa.array([1_001], kind))])


def test_database_that_is_missing_or_read_only(tmp_path, name, run, monkeypatch):
    with pytest.raises(ef.ConnectorError, match=r"there is no database /nowhere/shop.db; create it"):
        SqliteTable(TableTarget("orders", name), "/nowhere/shop.db").begin(SINK, run)


def test_server_that_does_not_answer(run):
    table = PostgresTable(TableTarget("orders", "orders"), "postgresql://me:secret@127.0.0.1:1/shop")
    with pytest.raises(ef.ConnectorError, match=r"no connection to the database:.*check the address, the user") as failed:
        table.begin(SINK, run)
    assert "secret" not in str(failed.value)


def test_user_without_the_right_to_write(postgres, name, run):
    database = Postgres(postgres.url)
    made(database, name)
    user = f"reader_{run}"
    database.execute(f"CREATE USER {user}")
    database.execute(f"GRANT SELECT ON {quoted(name)} TO {user}")
    with pytest.raises(ef.ConnectorError, match=r"permission denied"):
        PostgresTable(TableTarget("orders", name), postgres.url.replace("postgres@", f"{user}@")).begin(SINK, run)
