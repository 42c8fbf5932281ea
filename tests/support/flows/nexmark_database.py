"""A table that NexMark's q13 looks up, and DuckDB's tables of the same events as a flow's."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

import evenflow as ef
from evenflow.connectors.nexmark.schemas import SCHEMAS

SIDE = pa.table({"key": range(10_000), "value": [f"v{number}" for number in range(10_000)]})
"""The table that q13 looks up."""


def database_of(**events: Any) -> duckdb.DuckDBPyConnection:
    """Return a database with the tables that the oracles read, of the events of `ef.nexmark(stream, **events)`."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for stream in SCHEMAS:
        reader = ef.nexmark(stream, **events).reader(0, 1)
        rows = pa.Table.from_batches([batch.rows for batch in iter(lambda reader=reader: reader.poll(100_000), None)])
        database.register(f"_{stream}", rows)
        database.execute(f"CREATE TABLE {stream} AS SELECT * FROM _{stream}")
    database.register("side", SIDE)
    return database
