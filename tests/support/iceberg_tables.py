"""Iceberg tables of a catalog in SQLite, in a folder of a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table


def catalog_options(folder: Path) -> dict[str, str]:
    """Return the settings of the catalog in a folder."""
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def table_of(folder: Path, name: str = "shop.rows") -> Table:
    """Return the table as it is now."""
    return load_catalog("test", **catalog_options(folder)).load_table(name)


def created(folder: Path, schema: Any, name: str = "shop.rows", **options: Any) -> Table:
    """Create a table."""
    catalog = load_catalog("test", **catalog_options(folder))
    catalog.create_namespace_if_not_exists("shop")
    return catalog.create_table(name, schema, **options)


def rows_of(folder: Path, name: str = "shop.rows") -> list[tuple[Any, ...]]:
    """Return the rows of the table, sorted."""
    return query(table_of(folder, name).scan().to_arrow(), "SELECT * FROM written ORDER BY ALL")


def query(rows: pa.Table, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        database.register("written", rows)
        return database.execute(sql).fetchall()
