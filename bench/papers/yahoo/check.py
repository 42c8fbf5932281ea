"""Compares the counts of the Yahoo streaming benchmark with DuckDB's exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ...harness.exact_rows import compare_rows, rows_of
from .events import ad_events, campaigns

ORACLE = """
    SELECT campaign_id, sum(events)::BIGINT AS views, make_timestamptz(start * 1000) AS window_start
    FROM events JOIN campaigns USING (ad_id) WHERE event_type = 'view' GROUP BY campaign_id, start
"""
"""A query over `campaigns` and `events`, the number of events by `ad_id`, `event_type` and ten seconds from `start` (ms) on."""

COUNTED = """
    SELECT ad_id, event_type, epoch_ms(event_time) // 10000 * 10000 AS start, count(*) AS events FROM batch GROUP BY ALL
"""
PIECE = 1 << 20
"""Events that are counted at a time, to save memory."""


def connect(events: int, **arguments: Any) -> duckdb.DuckDBPyConnection:
    """Return a database with the counted events and the campaigns; arguments of `ad_events`."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.register("campaigns_rows", campaigns())
    database.execute("CREATE TABLE campaigns AS SELECT * FROM campaigns_rows")
    database.execute("CREATE TABLE events (ad_id VARCHAR, event_type VARCHAR, start BIGINT, events BIGINT)")
    reader = ad_events(events=events, **arguments, rows_per_batch=PIECE).reader(0, 1)
    while not reader.finished:
        batch = reader.poll(PIECE)
        assert batch is not None
        database.register("batch", pa.Table.from_batches([batch.rows]))
        database.execute(f"INSERT INTO events {COUNTED}")
    return database


def differences(database: duckdb.DuckDBPyConnection, results: Path) -> tuple[int, int, int]:
    """Return the number of rows in the Parquet files of `results`, how many are missing, and how many are wrong."""
    return compare_rows(database, ORACLE, rows_of(results))
