"""Rows into tables of PostgreSQL and SQLite: `write_sql` beside the database's own client alone, and what a big commit delays.

The client alone has the rows in memory and writes them in one transaction: PostgreSQL's by COPY, and for an upsert by COPY into a temporary
table and one INSERT from there; SQLite's by `executemany`. evenflow generates the same rows in a job of one process, stages them, and
writes them in a transaction per checkpoint. Processor time is that of all processes, with PostgreSQL's own.
"""

from __future__ import annotations

import io
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import product
from statistics import median
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyarrow import csv

import evenflow as ef
from evenflow.scheduler.protocol.reports import CheckpointState

from . import machine
from .conditions import record
from .errors import BenchmarkError
from .machine import CpuWatch
from .postgres_server import postgres_server
from .record import Case, Run, Verdict
from .throughput import check_names

INSERT = "INSERT INTO rows VALUES (?, ?, ?, ?) "
FRESH = "INSERT INTO rows SELECT DISTINCT ON (key) * FROM fresh ORDER BY key, seq DESC "
PARTS = ("rates", "answers")
DATABASES, MODES, WRITERS = ("postgres", "sqlite"), ("append", "upsert"), ("client", "evenflow")
KEYS = 100_000
COLUMNS = "key bigint, ts bigint, value double precision, seq bigint"
REPLACING = "ON CONFLICT (key) DO UPDATE SET ts = excluded.ts, value = excluded.value, seq = excluded.seq"
TARGET = 0.5
"""evenflow writes each row twice."""

WAIT = "600s"
LOOK = 0.02
"""Seconds between two questions to the coordinator."""

NOT_MEASURED = ("a database on another machine", "tables with more indexes than the key's", "several jobs that write one table")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Database:
    """An empty table `rows`, with the key as its primary key for upserts. `count` counts its rows."""

    url: str
    mode: str
    write: Callable[[Sequence[pa.RecordBatch]], None]
    count: Callable[[], int]


def run(*, parts: Sequence[str], rows: int, repeat: int, say: Say) -> Run:
    """The parts in the order of `PARTS`. Raises BenchmarkError for an unknown one, and if rows are missing in a table."""
    check_names("part", parts, PARTS)
    with postgres_server() as server:
        cases = _rates(server.url, rows, repeat, say) if "rates" in parts else []
        if "answers" in parts:
            cases += [case for database in DATABASES for case in _answers(server.url, database, rows, say)]
    arguments = {"parts": list(parts), "rows": rows, "repeat": repeat, "keys": KEYS}
    checks = [f"all {rows:,} rows are in the tables"]
    return record("sql", arguments, cases, _verdicts(cases), checks=checks, not_measured=NOT_MEASURED)


def _rates(server: str, rows: int, repeat: int, say: Say) -> list[Case]:
    """Each database and mode, the client and evenflow in turns."""
    details: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeat):
        for database, mode, writer in product(DATABASES, MODES, WRITERS):
            name, measured = f"{database}/{mode}/{writer}", _measured(server, database, mode, writer, rows)
            details.setdefault(name, []).append(measured)
            used = measured["cpu_seconds"] / rows * 1e6
            say(f"{name}: {rows / measured['seconds']:,.0f} rows/s, {used:.2f} s of processor time per million rows")
    cases = []
    for name, found in details.items():
        cases.append(Case(name, "rows/s", "higher", tuple(rows / each["seconds"] for each in found), tuple(found)))
        cases.append(Case(f"{name}, processor", "s per million rows", "lower", tuple(each["cpu_seconds"] / rows * 1e6 for each in found)))
    return cases


def _measured(server: str, name: str, mode: str, writer: str, rows: int) -> dict[str, float]:
    batches = list(_batches(rows))
    with _database(server, name, mode) as database, TemporaryDirectory(prefix="evenflow-bench-sql-") as folder:
        busy = machine.busy_share()
        with CpuWatch(newcomers=True) as cpu:
            begun = time.perf_counter()
            if writer == "client":
                database.write(batches)
            else:
                config = ef.JobConfig(checkpoint=ef.CheckpointConfig(folder, interval="1s"))
                _flow(database, rows).run(runtime="local", config=config).wait(WAIT)
            seconds = time.perf_counter() - begun
        _check(database, rows)
    return {"seconds": seconds, "cpu_seconds": cpu.seconds, "busy_before": busy}


def _answers(server: str, name: str, rows: int, say: Say) -> list[Case]:
    """How long the coordinator of a job on Ray takes to answer, while rows flow and while all of them are committed at once."""
    times: dict[str, list[float]] = {"rows flow": [], "they are committed": []}
    with _database(server, name, "append") as database, TemporaryDirectory(prefix="evenflow-bench-sql-") as folder:
        job = _flow(database, rows).run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(folder, interval=None)))
        while not job.status().state.final:
            begun = time.perf_counter()
            commits = any(report.state is CheckpointState.COMMITTING for report in job.checkpoints())
            times["they are committed" if commits else "rows flow"].append((time.perf_counter() - begun) * 1000)
            time.sleep(LOOK)
        job.wait(WAIT)
        _check(database, rows)
    cases = []
    for when, taken in times.items():
        if taken:
            say(f"{name}: while {when}, {len(taken)} answers of the coordinator took {median(taken):.1f} ms, at most {max(taken):.1f} ms")
            cases.append(Case(f"{name}/answers while {when}", "ms", "lower", tuple(taken)))
    return cases


def _flow(database: Database, rows: int) -> ef.Dataflow:
    flow = ef.Dataflow("bench-sql")
    key = "key" if database.mode == "upsert" else ()
    stream = flow.read(ef.generate(total=rows, keys=KEYS))
    stream.write(ef.write_sql(database.url, "rows", mode="upsert" if key else "append", key=key))
    return flow


def _batches(rows: int) -> Iterator[pa.RecordBatch]:
    """The rows that the job generates."""
    reader = ef.generate(total=rows, keys=KEYS).reader(0, 1)
    while not reader.finished:
        batch = reader.poll(rows)
        assert batch is not None
        yield batch.rows


def _check(database: Database, rows: int) -> None:
    wanted = len(pa.Table.from_batches(_batches(rows))["key"].unique()) if database.mode == "upsert" else rows
    if (found := database.count()) != wanted:
        raise BenchmarkError(f"benchmark sql: {found:,} of {wanted:,} rows are in {database.url}")


@contextmanager
def _database(server: str, name: str, mode: str) -> Iterator[Database]:
    """`server`: the address of PostgreSQL."""
    with _postgres(server, mode) if name == "postgres" else _sqlite(mode) as database:
        yield database


@contextmanager
def _postgres(server: str, mode: str) -> Iterator[Database]:
    import psycopg

    def write(batches: Sequence[pa.RecordBatch]) -> None:
        with psycopg.connect(server) as connection, connection.cursor() as cursor:
            table = "rows"
            if mode == "upsert":
                cursor.execute(f"CREATE TEMP TABLE fresh ({COLUMNS}) ON COMMIT DROP".encode())
                table = "fresh"
            with cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)".encode()) as copy:
                for batch in batches:
                    text = io.BytesIO()
                    csv.write_csv(batch, text, csv.WriteOptions(include_header=False))
                    copy.write(text.getbuffer())
            if mode == "upsert":
                cursor.execute((FRESH + REPLACING).encode())

    def count() -> int:
        with psycopg.connect(server) as connection:
            row = connection.execute("SELECT count(*) FROM rows").fetchone()
            return int(row[0]) if row else 0

    with psycopg.connect(server) as connection:
        connection.execute(b"DROP TABLE IF EXISTS rows")
        connection.execute(_table(mode).encode())
    yield Database(server, mode, write, count)


@contextmanager
def _sqlite(mode: str) -> Iterator[Database]:
    with TemporaryDirectory(prefix="evenflow-bench-sqlite-") as folder:
        path = f"{folder}/rows.db"

        def write(batches: Sequence[pa.RecordBatch]) -> None:
            insert = INSERT + (REPLACING if mode == "upsert" else "")
            with closing(sqlite3.connect(path)) as database, database:
                for batch in batches:
                    database.executemany(insert, zip(*(column.to_pylist() for column in batch.columns), strict=True))

        def count() -> int:
            with closing(sqlite3.connect(path)) as database:
                return int(database.execute("SELECT count(*) FROM rows").fetchone()[0])

        with closing(sqlite3.connect(path)) as database, database:
            database.execute(_table(mode))
        yield Database(f"sqlite:///{path}", mode, write, count)


def _table(mode: str) -> str:
    return f"CREATE TABLE rows ({COLUMNS}{', PRIMARY KEY (key)' if mode == 'upsert' else ''})"


def _verdicts(cases: Sequence[Case]) -> list[Verdict]:
    medians = {case.name: median(case.values) for case in cases}
    return [
        Verdict(f"{name}, rows/s of evenflow / the client's", medians[f"{name}/evenflow"] / medians[f"{name}/client"], TARGET, "higher")
        for name in (f"{database}/{mode}" for database, mode in product(DATABASES, MODES))
        if f"{name}/evenflow" in medians
    ]
