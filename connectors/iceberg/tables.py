"""Checks of Iceberg tables before they are read or written: what isn't supported is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine.errors import ConnectorError
from .address import TableAddress

if TYPE_CHECKING:
    from pyiceberg.table import Table

NEWEST_FORMAT = 2


def check_format(table: Table, address: TableAddress) -> None:
    """Raise ConnectorError for a store and a version of Iceberg's format that aren't supported."""
    address.check_store(table.location())
    if table.format_version > NEWEST_FORMAT:
        raise ConnectorError(
            f"operator `{address.operator}`: {address} has format version {table.format_version}; supported are 1 and 2 (format-version)"
        )


def check_writable(table: Table, address: TableAddress) -> None:
    """Raise ConnectorError for a table that can't be written."""
    check_format(table, address)
    if not table.spec().is_unpartitioned():
        partitions = ", ".join(field.name for field in table.spec().fields)
        raise ConnectorError(
            f"operator `{address.operator}`: {address} is partitioned by {partitions}, which isn't supported; write an unpartitioned table"
        )


def check_same(table: Table, table_id: str, address: TableAddress) -> None:
    """Raise ConnectorError if the table was dropped and recreated."""
    if str(table.metadata.table_uuid) != table_id:
        raise ConnectorError(
            f"operator `{address.operator}`: {address} was dropped and recreated (its id was {table_id}, and is "
            f"{table.metadata.table_uuid}); restore it, or begin without the checkpoint"
        )
