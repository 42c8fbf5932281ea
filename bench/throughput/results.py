"""Reads the results of T1 and T2 from Parquet files, to compare systems."""

from __future__ import annotations

from typing import Any

import duckdb

THRESHOLD = 3.0
"""A row is an alert if its value is above this multiple of the running mean of its key."""

WINDOW_MS = 1000


def result_of_windows(output: str, start: str, last_window: int) -> dict[str, float]:
    """Return the result of T1 up to the last window, which Spark never emits. `start`: SQL for the window's start in ms."""
    query = f"SELECT count(*), sum(n), sum(total), max(n) FROM read_parquet('{output}/*.parquet') WHERE {start} < {last_window}"  # noqa: S608 -- our own words
    return _named(("rows", "records", "total", "largest_count"), duckdb.execute(query).fetchone())


def result_of_alerts(output: str) -> dict[str, float]:
    """Return the result of T2."""
    query = f"SELECT count(*), sum(value), count(DISTINCT key) FROM read_parquet('{output}/*.parquet')"  # noqa: S608 -- our own words
    return _named(("alerts", "total", "keys"), duckdb.execute(query).fetchone())


def _named(names: tuple[str, ...], values: tuple[Any, ...] | None) -> dict[str, float]:
    return {name: float(value or 0) for name, value in zip(names, values or (0,) * len(names), strict=True)}
