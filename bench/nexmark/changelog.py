"""Converts the changes that a query of Flink's printed to its final rows, as Parquet."""

from __future__ import annotations

from pathlib import Path

import duckdb

from .queries.oracles import ORACLES

CHANGE = r"^(?:\d+> )?([+-])[IUD]\[(.*)\]$"
"""The format of a printed change: the worker, the kind of change, and the row's values separated by commas and spaces."""


def write_final_rows(database: duckdb.DuckDBPyConnection, name: str, changes: Path, folder: Path) -> None:
    """Write the rows with the columns of the query's oracle; `database` has the events' tables. No text may contain a comma and a space."""
    columns = database.execute(f"DESCRIBE ({ORACLES[name]})").fetchall()
    values = ", ".join(f'CAST(cells[{place}] AS {kind}) AS "{column}"' for place, (column, kind, *_) in enumerate(columns, 1))
    database.execute(
        f"""
        COPY (
            WITH changes AS (
                SELECT regexp_extract(line, '{CHANGE}', ['sign', 'row']) AS change
                FROM read_csv('{changes}', columns = {{'line': 'VARCHAR'}}, delim = '\x01', quote = '', escape = '', header = false)
                WHERE regexp_matches(line, '{CHANGE}')
            ), final AS (
                SELECT string_split(change.row, ', ') AS cells, sum(CASE change.sign WHEN '+' THEN 1 ELSE -1 END) AS times
                FROM changes GROUP BY cells
            )
            SELECT {values} FROM (SELECT cells, unnest(range(times::BIGINT)) FROM final)
        ) TO '{folder / "rows.parquet"}' (FORMAT parquet)
        """
    )
