"""The source of an Iceberg table that grows: the files of one snapshot, and those that each later snapshot adds.

A position is a snapshot: its sequence number orders it, and its id tells whether the table's history still goes through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MAX_TIME
from ...engine.source import SourceReader
from ...engine.time.event_time import EventTime
from ..files.splits import OpenSplit, Split
from ..followed.versions import VersionsReader, share_out_versions
from ..formats.row_groups import open_parquet
from ..quiet import idle_advice
from .address import TableAddress
from .columns import columns_of
from .snapshot_source import IcebergSource
from .snapshots import added_files, files_of, successor
from .types import fits

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

LEAST_FORMAT = 2
"""The format version from which snapshots have sequence numbers."""


class FollowedIcebergSource(IcebergSource):
    """A source of the files of one snapshot, and those that later snapshots add."""

    guarantee = "exactly once (seeks to the checkpointed snapshot, file and row)"

    _continues = True

    def __init__(
        self,
        address: TableAddress,
        snapshot: int | None,
        event_time: EventTime | None,
        columns: Sequence[str] | None,
        poll_every: float,
        skip_changes: bool,
    ) -> None:
        super().__init__(address, snapshot, event_time, columns)
        self._poll_every, self._skip_changes = poll_every, skip_changes
        self.idle_advice = idle_advice(event_time, "table")
        self._first: tuple[int, int | None, list[str]] | None = None

    def start(self) -> None:
        table, snapshot = self._begin()
        if table.format_version < LEAST_FORMAT:
            raise ConnectorError(
                f"operator `{self.name}`: {self._address} has format version {table.format_version}, whose snapshots have no order; "
                "upgrade it to 2 (the property format-version)"
            )
        if not self._all.names:
            raise ConnectorError(f"operator `{self.name}`: {self._address} has no columns yet; start the job when it has some")
        with self._address.explained("can't be read"):
            files = files_of(table, snapshot, self._address)
        self._first = (0, None, files) if snapshot is None else (snapshot.sequence_number or 0, snapshot.snapshot_id, files)

    def reader(self, index: int, parallelism: int) -> SourceReader:
        if self._first is None:
            raise ConnectorError(f"operator `{self.name}`: start() looks at the table and must be called before reader()")
        number, identity, files = self._first
        history = _History(self, number, identity, files)
        return SnapshotsReader(history, self._open, self._poll_every, index=index, parallelism=parallelism, event_time=self._event_time)

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        ids = [pair for position in positions for pair in position["snapshots"]]
        return [{**position, "snapshots": ids} for position in share_out_versions(positions, parallelism, self.name)]

    def earliest(self, position: Any) -> int:
        return MAX_TIME if self._event_time is None else int(position["watermark"])

    def successor(self, number: int, after: int | None) -> tuple[int, int, Sequence[str]] | None:
        """Return the sequence number, the id and the new files of the snapshot that follows, see `snapshots.successor`.

        The table is read again only if the newest snapshot that is known was read. Raises ConnectorError.
        """
        with self._address.explained("can't be read"):
            table = self._table
            found = None if table is None else successor(table, number, after, self._address)
            if table is None or found is None:
                table = self._load()
                found = successor(table, number, after, self._address)
            if found is None:
                return None
            return found.sequence_number or 0, found.snapshot_id, self._added(table, found)

    def peek(self, file: str) -> Split:
        assert self._event_time is not None
        with open_parquet(file, self.name, self._opened) as parquet:
            low, high = self._time_bounds(file, parquet.metadata, None)
        return Split(file, 0, min_time=low, max_time=high)

    def _added(self, table: Table, snapshot: Snapshot) -> Sequence[str]:
        """Return the files with new rows of a snapshot. Raises ConnectorError if it changes rows or columns."""
        what = f"snapshot {snapshot.snapshot_id} of {self._address}"
        operation = "unknown" if snapshot.summary is None else snapshot.summary.operation.value
        if snapshot.schema_id is not None:
            self._check_columns(table, snapshot.schema_id, what)
        if operation == "append":
            return added_files(table, snapshot, self._address)
        if operation == "replace" or self._skip_changes:
            return ()
        raise ConnectorError(
            f"operator `{self.name}`: {what} deletes or changes existing rows ({operation}), and a stream can't take rows back; "
            "skip_changes=True skips such snapshots, including the rows that they add"
        )

    def _check_columns(self, table: Table, schema_id: int, what: str) -> None:
        """Raise ConnectorError if the rows of a snapshot lack the columns that are read, or have others."""
        there = {field.field_id: field.name for field in table.schemas()[schema_id].fields}
        current = {field.field_id for field in table.schema().fields}
        read = {name: self._found.columns[name].field_id for name in self._schema.names}
        gone = next((name for name, field_id in read.items() if field_id not in there and field_id not in current), None)
        if gone is not None:
            raise ConnectorError(f"operator `{self.name}`: column `{gone}` is gone in {what}; begin without the checkpoint")
        renamed = next((name for name, field_id in read.items() if there.get(field_id, name) != name), None)
        if renamed is not None:
            raise ConnectorError(
                f"operator `{self.name}`: column `{renamed}` is called `{there[read[renamed]]}` in {what}; start the job again from its "
                "checkpoint, with the new name in the flow"
            )
        held = [name for name, field_id in read.items() if field_id in there]
        for field in columns_of(table, table.schemas()[schema_id], held, self._address).schema:
            if not fits(field.type, self._schema.field(field.name).type):
                raise ConnectorError(
                    f"operator `{self.name}`: column `{field.name}` was {self._schema.field(field.name).type}, and is {field.type} in "
                    f"{what}; begin without the checkpoint"
                )
        known = {column.field_id for column in self._found.columns.values()}
        new = [name for field_id, name in there.items() if field_id not in known]
        if new and self._columns is None and self.needed is None:
            raise ConnectorError(
                f"operator `{self.name}`: {what} has the new column `{new[0]}`; start the job again from its checkpoint to read it "
                f"(earlier rows have nulls), or omit it: columns={self._all.names}"
            )


class _History:
    """The snapshots of a table as numbered versions for one reader: it knows the ids of the snapshots that its position is at."""

    def __init__(self, source: FollowedIcebergSource, number: int, identity: int | None, files: Sequence[str]) -> None:
        self.name, self._source = source.name, source
        self.first = number, files
        self.ids: dict[int, int | None] = {number: identity}

    def added(self, version: int) -> Sequence[str] | None:
        after = self.ids[version - 1]
        found = self._source.successor(version - 1, after)
        if found is None:
            return None
        number, identity, files = found
        self.ids[version] = identity if number <= version else after  # numbers between are those of other branches
        return files if number <= version else ()

    def peek(self, file: str) -> Split:
        return self._source.peek(file)


class SnapshotsReader(VersionsReader):
    """A reader of the files that the snapshots of a table add; its versions are sequence numbers."""

    def __init__(
        self, history: _History, open_split: OpenSplit, poll_every: float, *, index: int, parallelism: int, event_time: EventTime | None
    ) -> None:
        super().__init__(history, open_split, poll_every, index=index, parallelism=parallelism, event_time=event_time)
        self._history = history

    def seek(self, position: Any) -> None:
        super().seek(position)
        self._history.ids = dict(position["snapshots"])

    def _position_of_files(self) -> dict[str, Any]:
        position = super()._position_of_files()
        at = [version - 1 for version, _ in position["next"]]
        self._history.ids = {number: self._history.ids[number] for number in at} or self._history.ids
        return {**position, "snapshots": [[number, identity] for number, identity in self._history.ids.items()]}
