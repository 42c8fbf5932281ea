"""The snapshots of a table's main branch in their order, and the files of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine.errors import ConnectorError
from .address import TableAddress

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def successor(table: Table, number: int, after: int | None, address: TableAddress) -> Snapshot | None:
    """Return the snapshot that follows the one with the sequence number `number` and the id `after`, None if that is the newest.

    `after` is None for the beginning of the table. Raises ConnectorError if the table's history has a gap there, or another
    branch: then rows would be missing, or were taken back. A snapshot whose parent has expired may have lost its parent's id;
    it follows if its sequence number does.
    """
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    found, at = None, table.metadata.current_snapshot_id
    while at is not None and at != after and at in by_id:
        found, at = by_id[at], by_id[at].parent_snapshot_id
    if at == after and (after is not None or found is None):
        return found
    if found is None or after in by_id:
        raise ConnectorError(
            f"operator `{address.operator}`: snapshot {after} of {address}, whose rows were read, is no longer part of its history: it was "
            "rolled back or replaced; begin without the checkpoint"
        )
    if at is None and found.sequence_number == number + 1:
        return found
    raise ConnectorError(
        f"operator `{address.operator}`: a snapshot of {address} before {found.snapshot_id} has expired before it was read; begin without "
        "the checkpoint, and keep snapshots for longer (history.expire.max-snapshot-age-ms)"
    )


def files_of(table: Table, snapshot: Snapshot | None, address: TableAddress) -> list[str]:
    """List all data files of a snapshot. Raises ConnectorError if rows of them are deleted by delete files."""
    from pyiceberg.manifest import ManifestContent

    if snapshot is None:
        return []
    data = list[str]()
    for manifest in snapshot.manifests(table.io):
        entries = manifest.fetch_manifest_entry(table.io)
        if manifest.content != ManifestContent.DATA and entries:
            raise ConnectorError(
                f"operator `{address.operator}`: snapshot {snapshot.snapshot_id} of {address} has rows that are deleted by delete "
                "files, which isn't supported; rewrite the table's data files first (Spark: CALL system.rewrite_data_files), or read it "
                "with Spark and from_spark"
            )
        data += _checked(entries, address)
    return sorted(data)


def added_files(table: Table, snapshot: Snapshot, address: TableAddress) -> list[str]:
    """List the data files that a snapshot has added."""
    from pyiceberg.manifest import ManifestContent, ManifestEntryStatus

    manifests = [each for each in snapshot.manifests(table.io) if each.added_snapshot_id == snapshot.snapshot_id]
    data = [each for each in manifests if each.content == ManifestContent.DATA]
    entries = [entry for manifest in data for entry in manifest.fetch_manifest_entry(table.io)]
    own = [entry for entry in entries if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id]
    return sorted(_checked(own, address))


def _checked(entries: list[ManifestEntry], address: TableAddress) -> list[str]:
    """Return the files of entries. Raises ConnectorError if one isn't Parquet."""
    from pyiceberg.manifest import FileFormat

    other = next((entry.data_file for entry in entries if entry.data_file.file_format != FileFormat.PARQUET), None)
    if other is not None:
        raise ConnectorError(
            f"operator `{address.operator}`: {other.file_path} of {address} is {other.file_format.name}; only Parquet files are supported"
        )
    return [entry.data_file.file_path for entry in entries]
