"""Compares the rows of the price search machine's queries with DuckDB's exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ...harness.exact_rows import compare_rows, rows_of
from .oracles import ORACLES
from .source import STREAMS, all_rows


def connect(turns: int, **arguments: Any) -> duckdb.DuckDBPyConnection:
    """Return a database with the streams' rows as tables; arguments of `visits`."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for stream in STREAMS:
        database.register(f"{stream}_rows", pa.Table.from_batches(all_rows(stream, turns, **arguments)))
        database.execute(f"CREATE TABLE {stream} AS SELECT * FROM {stream}_rows")
    return database


def differences(database: duckdb.DuckDBPyConnection, query: str, results: Path) -> tuple[int, int, int]:
    """Return the number of rows in the Parquet files of `results`, how many are missing, and how many are wrong."""
    return compare_rows(database, ORACLES[query], rows_of(results))
