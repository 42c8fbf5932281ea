"""NexMark's queries over windows while their code is exchanged: each row must be that of one version, and in its place.

Each job gets two upgrades. The first writes the filters of its inputs in another way, and replaces the workers of all operators: the rows
must stay the same. The second exchanges the filter of its results: windows that ended before must have the rows of the old filter, those
that end later the rows of the new one, and in between each row may be that of either; no row may be missing or come twice. Event time is
that of the clock. DuckDB has the rows, of windows that ended before the job was drained.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import evenflow as ef

from ...connectors.nexmark.numbering import StreamName
from ...scheduler.protocol.reports import UpgradeReport
from ..harness.conditions import scratch
from ..harness.errors import BenchmarkError
from ..harness.exact_rows import count, rows_of
from ..harness.jobs import cancelled, drain
from .check import connect
from .live import LiveEvents
from .queries import QUERIES
from .queries.events import Events, side_table
from .queries.oracles import ORACLES

RATE = 5_000.0
"""Events of all streams a second."""

START, BETWEEN, LAG = 15.0, 13.0, 5.0
"""Seconds: for the processes to start, before an upgrade and twice after the last so that windows end, and by which results may be late."""

WAIT = 300.0
OPTIONS: Mapping[str, Any] = {"canary": 0.25, "watch": 2.0, "timeout": WAIT}
INPUT: Mapping[StreamName, str] = {"person": "id", "auction": "seller", "bid": "auction"}
"""The column by which each input is filtered: rows with a fifth of its values are discarded."""


@dataclass(frozen=True, slots=True)
class Result:
    """The column of a query's results by which they are filtered, and the end of a row's window in SQL."""

    column: str
    end: str


RESULTS: Mapping[str, Result] = {
    "q5": Result("auction", "window_start + INTERVAL 10 SECOND"),
    "q8": Result("id", "starttime + INTERVAL 10 SECOND"),
    "q11": Result("bidder", "endtime"),
}


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The rows of a query, how many are missing and wrong, and how many came while both filters ran that only one of them lets through.

    `seconds` of the two upgrades.
    """

    query: str
    rows: int
    missing: int
    wrong: int
    only_old: int
    only_new: int
    seconds: tuple[float, float]

    @property
    def right(self) -> bool:
        """True if no row is missing and none is wrong."""
        return not self.missing and not self.wrong

    def __str__(self) -> str:
        mixed = f"{self.only_old:,} of the old filter alone and {self.only_new:,} of the new one alone while both ran"
        verdict = "all are right" if self.right else f"WRONG: {self.missing:,} are missing and {self.wrong:,} are wrong"
        return f"{self.query}: {self.rows:,} rows, {mixed}; {verdict}"


def program(query: str, begun: float, out: Path, *, inputs: int, results: int) -> ef.Dataflow:
    """Return the flow of a query with version `inputs` of the filters of its inputs, and `results` of that of its results, each 1 or 2."""
    flow = ef.Dataflow(f"bench-upgrade-{query}")

    def stream(name: StreamName) -> ef.Stream:
        rest = ef.col(INPUT[name]) % 5
        kept = rest != 0 if inputs == 1 else ~(rest == 0)
        return flow.read(_source(name, begun)).filter(kept).named(f"{name}-kept")

    events = Events(lambda: stream("person"), lambda: stream("auction"), lambda: stream("bid"), side_table())
    kept = ef.col(RESULTS[query].column) % (2 if results == 1 else 3) != 0
    QUERIES[query](events).filter(kept).named("kept").write(ef.write_parquet(out))
    return flow


def upgraded(query: str) -> Upgraded:
    """Upgrade the job of a query twice, and check its rows. Raises BenchmarkError if the check has no rows that tell the versions apart."""
    with scratch(f"upgrade-{query}") as folder:
        begun = time.time() + START
        out, config = folder / "out", _config(folder)
        with cancelled(program(query, begun, out, inputs=1, results=1).run(config=config), WAIT) as job:
            time.sleep(max(0.0, begun + BETWEEN - time.time()))
            same = _done(job.upgrade(program(query, begun, out, inputs=2, results=1), everything=True, **OPTIONS))
            time.sleep(BETWEEN)
            other = _done(job.upgrade(program(query, begun, out, inputs=2, results=2), **OPTIONS))
            time.sleep(2 * BETWEEN)  # q5 has one row in two seconds
            ended = time.time()
            drain(job, WAIT)
        assert other.began_at is not None
        assert other.seconds is not None
        for name in INPUT:
            _source(name, begun, ceil((ended - begun) * RATE)).write(folder / "events" / name)
        rows, missing, wrong, old, new = compare(query, folder, (other.began_at - LAG, other.began_at + other.seconds), ended - 1.0)
    return Upgraded(query, rows, missing, wrong, old, new, (same.seconds or 0.0, other.seconds))


def compare(query: str, folder: Path, change: tuple[float, float], until: float) -> tuple[int, int, int, int, int]:
    """Compare the rows in `folder / out` whose windows ended by `until` with DuckDB's for `folder / events`.

    `change`: the time in which a row may be that of either filter. Returns the number of rows, of missing and of wrong ones, and of those
    that only the old and only the new filter lets through meanwhile. Raises BenchmarkError if no row tells the filters apart before or
    after.
    """
    result, (first, last) = RESULTS[query], change
    old, new, ended = f"({result.column} % 2 != 0)", f"({result.column} % 3 != 0)", f"{result.end} <= to_timestamp({until})"
    before, after = f"{result.end} < to_timestamp({first})", f"{result.end} > to_timestamp({last})"
    only_old, only_new, meanwhile = f"{old} AND NOT {new}", f"{new} AND NOT {old}", f"NOT ({before} OR {after})"
    with connect(folder / "events") as database:
        for name, column in INPUT.items():
            rows = f"SELECT * FROM read_parquet('{folder}/events/{name}/*.parquet') WHERE {column} % 5 != 0"
            database.execute(f"CREATE OR REPLACE VIEW {name} AS {rows}")
        database.execute(f"CREATE TEMP TABLE expected AS SELECT * FROM ({ORACLES[query]}) WHERE {ended}")
        columns = ", ".join(f'"{row[0]}"' for row in database.execute("DESCRIBE expected").fetchall())
        database.execute(f"CREATE TEMP TABLE found AS SELECT {columns} FROM ({rows_of(folder / 'out')}) WHERE {ended}")

        def found(condition: str) -> int:
            return count(database, f"SELECT * FROM found WHERE {condition}")

        if not found(f"{before} AND {only_old}") or not found(f"{after} AND {only_new}"):
            raise BenchmarkError(f"{query}: no row before or none after the upgrade tells the filters apart: use more events")
        required, allowed = (f"CASE WHEN {before} THEN {old} WHEN {after} THEN {new} ELSE {old} {both} {new} END" for both in ("AND", "OR"))
        missing = count(database, f"SELECT * FROM expected WHERE {required} EXCEPT ALL TABLE found")
        wrong = count(database, f"TABLE found EXCEPT ALL SELECT * FROM expected WHERE {allowed}")
        return found("true"), missing, wrong, found(f"{meanwhile} AND {only_old}"), found(f"{meanwhile} AND {only_new}")


def _source(name: StreamName, begun: float, events: int | None = None) -> LiveEvents:
    return LiveEvents(name, begun=begun, rate=RATE, events=events, base_time=int(begun * 1000), readers=2)


def _config(folder: Path) -> ef.JobConfig:
    checkpoint = ef.CheckpointConfig(str(folder / "checkpoints"), interval="1s")
    return ef.JobConfig(parallelism=2, key_groups=64, checkpoint=checkpoint, worker=ef.WorkerConfig(cpus=0))


def _done(report: UpgradeReport | None) -> UpgradeReport:
    assert report is not None, "the new program differs"
    return report
