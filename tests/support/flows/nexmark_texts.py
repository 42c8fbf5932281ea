"""NexMark's queries as texts of SQL, the streams that each reads, and DuckDB's tables of the same events."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pyarrow as pa

import evenflow as ef
from evenflow.bench.nexmark.flink_sql import QUERIES
from evenflow.connectors.nexmark.schemas import SCHEMAS

TEXTS = {
    **QUERIES,
    "q13": """
        SELECT b.auction, b.bidder, b.price, b.`dateTime`, s.`value`
        FROM bid AS b JOIN side FOR SYSTEM_TIME AS OF PROCTIME() AS s ON MOD(b.auction, 10000) = s.`key`
    """,
}
SIDE = pa.table({"key": range(10_000), "value": [f"v{number}" for number in range(10_000)]})
"""The table that q13 looks up."""


def read_by(text: str) -> list[str]:
    """Return the streams that a query reads."""
    return [stream for stream in SCHEMAS if re.search(rf"\b(FROM|JOIN|TABLE) {stream}\b", text)]


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
