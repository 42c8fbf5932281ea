"""Runs a query over events in Parquet files, and compares all of its rows with DuckDB's exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

import evenflow as ef

from ...connectors.nexmark.source import STREAMS
from ..harness.conditions import scratch
from ..harness.exact_rows import compare_rows, count, rows_of
from .queries import QUERIES
from .queries.events import Events, side_table
from .queries.oracles import ORACLES, PROGRESS, UPDATED

QUIET = ef.JobConfig(checkpoint=ef.CheckpointConfig(interval=None))


@dataclass(frozen=True, slots=True)
class Checked:
    """The rows that a query read in `seconds`, and its final rows; how many are `missing` and `wrong` compared with DuckDB's."""

    query: str
    rows_in: int
    rows_out: int
    seconds: float
    missing: int
    wrong: int

    @property
    def equal(self) -> bool:
        """True if all rows are DuckDB's."""
        return not self.missing and not self.wrong

    @property
    def rate(self) -> float:
        """Rows read per second."""
        return self.rows_in / self.seconds


def check_query(name: str, events_folder: Path, *, max_delay: str = "0s", config: ef.JobConfig = QUIET) -> Checked:
    """Run one query on the local runtime, over the events of a folder with a folder each for `person`, `auction` and `bid`.

    `max_delay`: by how much events are out of order.
    """
    with scratch(f"nexmark-{name}") as folder:
        flow = ef.Dataflow(f"nexmark-{name}")
        QUERIES[name](_events(flow, events_folder, max_delay)).write(ef.write_parquet(folder / "out"))
        seconds = flow.run(runtime="local", config=config).wait().status().running_seconds
        return compared(flow, name, events_folder, folder, seconds)


def connect(events_folder: Path) -> duckdb.DuckDBPyConnection:
    """Return a database with the tables that the oracles read."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for name in STREAMS:
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{events_folder / name}/*.parquet')")
    database.register("side", side_table())
    return database


def add_progress(flow: ef.Dataflow, name: str, folder: Path) -> None:
    """Make the flow of a query also write the rows by which `compared` finds the last row of a key in any order."""
    if name == "q4":  # an average may also fall; its totals only grow
        totals = next(node for node in flow.graph if node.name == "totals")
        ef.Stream(flow, totals).write(ef.write_parquet(folder / "totals", name="all-totals"))


def compared(flow: ef.Dataflow, name: str, events_folder: Path, folder: Path, seconds: float, *, by_progress: bool = False) -> Checked:
    """Compare the rows in `folder / out` with DuckDB's for the events.

    `by_progress`: several workers may have written a key's updates, so their order is unknown, and the row with the most progress counts.
    """
    read = [node.name for node in flow.graph if node.name in STREAMS]
    with connect(events_folder) as database:
        rows_in = sum(count(database, f"TABLE {stream}") for stream in read)
        if by_progress and name in PROGRESS:
            found = rows_of(folder / ("totals" if name == "q4" else "out"))
            rows_out, missing, wrong = compare_rows(database, ORACLES[name], PROGRESS[name].format(found=found))
        else:
            rows_out, missing, wrong = compare(database, name, folder / "out")
    return Checked(name, rows_in, rows_out, seconds, missing, wrong)


def compare(database: duckdb.DuckDBPyConnection, name: str, results: Path, *, by_position: bool = False) -> tuple[int, int, int]:
    """Return how many final rows a folder has, how many are missing, and how many are wrong, compared with the oracle's.

    `by_position`: their columns are the oracle's whatever their names are.
    """
    found = rows_of(results)
    if by_position:
        names = ", ".join(f'"{row[0]}"' for row in database.execute(f"DESCRIBE {ORACLES[name]}").fetchall())
        found = f"SELECT * FROM ({found}) AS found({names})"
    if name == "q12":
        found = f"SELECT bidder, sum(bid_count)::BIGINT AS bid_count FROM ({found}) GROUP BY bidder"
    elif name in UPDATED and any(results.glob("*.parquet")):
        keys = ", ".join(f'"{key}"' for key in UPDATED[name])
        found += f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY filename DESC, file_row_number DESC) = 1"
    return compare_rows(database, ORACLES[name], found)


def _events(flow: ef.Dataflow, folder: Path, max_delay: str) -> Events:
    def stream(name: str) -> Callable[[], ef.Stream]:
        return lambda: flow.read(ef.read_parquet(folder / name, event_time="dateTime", max_delay=max_delay, name=name))

    return Events(stream("person"), stream("auction"), stream("bid"), side_table())
