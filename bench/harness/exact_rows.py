"""Compares the rows of two queries in DuckDB exactly, with their multiplicity.

>>> compare_rows(duckdb.connect(), "SELECT unnest([1, 2, 2]) AS n", "SELECT unnest([2, 3]) AS n, 'ignored' AS why")
(2, 2, 1)
"""

from __future__ import annotations

from pathlib import Path

import duckdb


def compare_rows(database: duckdb.DuckDBPyConnection, expected: str, found: str) -> tuple[int, int, int]:
    """Return the number of rows of the query `found`, how many of the query `expected` are missing, and how many are wrong.

    `found` may have more columns, and may read the table `expected`.
    """
    database.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {expected}")
    columns = ", ".join(f'"{row[0]}"' for row in database.execute("DESCRIBE expected").fetchall())
    database.execute(f"CREATE OR REPLACE TEMP TABLE found AS SELECT {columns} FROM ({found})")
    missing, wrong = (count(database, f"TABLE {a} EXCEPT ALL TABLE {b}") for a, b in (("expected", "found"), ("found", "expected")))
    return count(database, "TABLE found"), missing, wrong


def rows_of(folder: Path) -> str:
    """Return a query for the rows of a folder of Parquet files, for `compare_rows`. A folder without files has no rows."""
    if not any(folder.glob("*.parquet")):
        return "SELECT * FROM expected LIMIT 0"
    return f"SELECT * FROM read_parquet('{folder}/*.parquet', filename = true, file_row_number = true)"


def count(database: duckdb.DuckDBPyConnection, query: str) -> int:
    """Count the rows of a query."""
    row = database.execute(f"SELECT count(*) FROM ({query})").fetchone()
    return int(row[0]) if row else 0
