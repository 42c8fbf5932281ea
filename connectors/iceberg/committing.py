"""Commits of checkpoints to an Iceberg table: each is one snapshot, which is made once however often it is tried.

The number of the last committed checkpoint is a property of the table, `evenflow.run.RUN`, set in the transaction that adds the
snapshot. Snapshots expire; the property stays. A transaction also requires that no other snapshot came since the property was read.
So after a conflict or a lost reply the table is read again, and the property tells whether the checkpoint is in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from ...engine.errors import ConnectorError
from .address import TableAddress, library_errors, passing_errors
from .snapshots import added_files
from .tables import check_same, check_writable

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot

JOB, RUN, CHECKPOINT, PREVIOUS = "evenflow.job", "evenflow.run", "evenflow.checkpoint", "evenflow.previous-checkpoint"

MOST_TRIES = 12

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds between tries, doubled each time: about a minute in all."""

_MERGE = "commit.manifest-merge.enabled"


def marker(run: str) -> str:
    """Return the name of the table property that holds a run's last committed checkpoint."""
    return f"{RUN}.{run}"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file of a run: its location, rows and bytes, and the id of the table that it was written for."""

    table_id: str
    run: str
    location: str
    rows: int
    size: int

    @classmethod
    def of(cls, entry: Sequence[Any]) -> WrittenFile:
        """Create it from a result of `entry`."""
        return cls(*entry)

    def entry(self) -> list[Any]:
        """Return the fields as msgpack and a manifest can hold them."""
        return [self.table_id, self.run, self.location, self.rows, self.size]


class Committing:
    """Commits the checkpoints of the job's operator `job` to the table at `address`."""

    def __init__(self, address: TableAddress, job: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._address, self._job, self._pause = address, job, pause

    def begin(self, run: str, *, continues: bool) -> str:
        """Return the table's id. For a new run, create the table if it is missing, and the run's property. Raises ConnectorError."""
        from pyiceberg.catalog import Catalog
        from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
        from pyiceberg.schema import Schema

        def attempt() -> str:
            catalog = self._address.catalog()
            try:
                table = catalog.load_table(self._address.table)
            except NoSuchTableError:
                if continues:
                    raise
                try:
                    catalog.create_namespace_if_not_exists(Catalog.namespace_from(self._address.table))
                    table = catalog.create_table(self._address.table, Schema())
                except TableAlreadyExistsError:
                    table = catalog.load_table(self._address.table)
            check_writable(table, self._address)
            if not continues and marker(run) not in table.properties:
                transaction = table.transaction()
                transaction.set_properties({marker(run): "0"})
                commit(table, transaction)
            return str(table.metadata.table_uuid)

        return str(self._tried(attempt, "can't be prepared"))

    def add(self, run: str, checkpoint: int, files: Sequence[WrittenFile]) -> None:
        """Add the files of a run's checkpoint to the table, unless it has them. Raises ConnectorError."""

        def attempt() -> None:
            table = self._address.catalog().load_table(self._address.table)
            done = self._done(table, run, checkpoint)
            if done >= checkpoint:
                return
            for file in files:
                check_same(table, file.table_id, self._address)
            check_writable(table, self._address)
            transaction = table.transaction()
            transaction.set_properties({marker(run): str(checkpoint)})
            told = {JOB: self._job, RUN: run, CHECKPOINT: str(checkpoint), PREVIOUS: str(done)}
            snapshot = transaction.update_snapshot(snapshot_properties=told)
            merged = str(table.properties.get(_MERGE, "false")).lower() == "true"
            with snapshot.merge_append() if merged else snapshot.fast_append() as append:
                for file in sorted(files, key=lambda file: file.location):
                    append.append_data_file(self._data_file(table, file))
            commit(table, transaction)

        self._tried(attempt, f"can't take checkpoint {checkpoint}")

    def retract(self, run: str, after: int) -> None:
        """Remove the files of a run's later checkpoints from the table, by one snapshot. Raises ConnectorError."""

        def attempt() -> None:
            table = self._address.catalog().load_table(self._address.table)
            done = self._done(table, run, after)
            if done <= after:
                return
            locations, kept = self._later(table, run, done, after)
            transaction = table.transaction()
            transaction.set_properties({marker(run): str(kept)})
            told = {JOB: self._job, "evenflow.retracted-run": run, "evenflow.retracted-after": str(after)}
            with transaction.update_snapshot(snapshot_properties=told).overwrite() as overwrite:
                for file in self._live(table, locations):
                    overwrite.delete_data_file(file)
            commit(table, transaction)

        self._tried(attempt, f"can't give back the rows after checkpoint {after}")

    def _tried(self, attempt: Callable[[], Any], problem: str) -> Any:
        """Try until there is a result: a conflict and a lost reply are tried again, since `attempt` reads the table first."""
        from pyiceberg.exceptions import NoSuchTableError

        found: Exception | None = None
        for number in range(MOST_TRIES):
            if number:
                self._pause(min(FIRST_PAUSE * 2 ** (number - 1), LONGEST_PAUSE))
            try:
                return attempt()
            except NoSuchTableError as error:
                raise ConnectorError(
                    f"operator `{self._address.operator}`: {self._address} was dropped while the job ran; restore it, or begin without "
                    "the checkpoint"
                ) from error
            except library_errors() as error:
                if not isinstance(error, passing_errors()):
                    raise self._address.error(problem, error) from error
                found = error
        assert found is not None
        raise self._address.error(f"{problem} ({MOST_TRIES} tries)", found) from found

    def _done(self, table: Table, run: str, checkpoint: int) -> int:
        value = table.properties.get(marker(run))
        if value is None:
            raise ConnectorError(
                f"operator `{self._address.operator}`: the property {marker(run)} of {self._address} is missing, so it isn't known "
                f"whether the rows of checkpoint {checkpoint} are in it; don't remove properties of a run that may be resumed, nor "
                "recreate its table. Look at the table's snapshots, and set the property to the last evenflow.checkpoint of this run"
            )
        return int(value)

    def _data_file(self, table: Table, file: WrittenFile) -> DataFile:
        """Return the table's entry for a file. Raises ConnectorError if it is missing or was cut, or has columns that are gone."""
        from pyiceberg.io.pyarrow import (
            compute_statistics_plan,
            data_file_statistics_from_parquet_metadata,
            parquet_path_to_id_mapping,
            pyarrow_to_schema,
        )
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        source = table.io.new_input(file.location)
        try:
            size = len(source)
            with source.open() as stream:
                metadata = pq.read_metadata(stream)
        except FileNotFoundError as error:
            raise ConnectorError(
                f"operator `{self._address.operator}`: {file.location} is missing, so its rows can't be committed to {self._address}; "
                "don't remove files that no snapshot names while a job that wrote them may be resumed"
            ) from error
        if (size, metadata.num_rows) != (file.size, file.rows):
            raise ConnectorError(
                f"operator `{self._address.operator}`: {file.location} has {size:,} bytes, and {file.size:,} were written: its rows are "
                "lost unless you restore the file"
            )
        schema = pyarrow_to_schema(metadata.schema.to_arrow_schema())
        self._check_fields(schema, table.schema(), file)
        statistics = data_file_statistics_from_parquet_metadata(
            metadata, compute_statistics_plan(schema, table.properties), parquet_path_to_id_mapping(schema)
        )
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=file.location,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            file_size_in_bytes=size,
            sort_order_id=None,
            spec_id=table.metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )

    def _check_fields(self, ours: Schema, theirs: Schema, file: WrittenFile) -> None:
        """Raise ConnectorError if a column of a file was dropped from the table, or changed to a type that doesn't hold it."""
        from pyiceberg.exceptions import ResolveError
        from pyiceberg.schema import promote

        for field_id in sorted(ours.field_ids):
            name, kind = ours.find_column_name(field_id), ours.find_type(field_id)
            problem = None
            if field_id not in theirs.field_ids:
                problem = "was dropped"
            elif kind.is_primitive and kind != (now := theirs.find_type(field_id)):
                try:
                    promote(kind, now)
                except ResolveError:
                    problem = f"was {kind}, and is {now}"
            if problem is not None:
                raise ConnectorError(
                    f"operator `{self._address.operator}`: column `{name}` of {self._address} {problem} while the job ran, so the rows in "
                    f"{file.location} don't fit; restore the column (roll the schema back), or begin without the checkpoint"
                )
        missing = next((field.name for field in theirs.fields if field.required and field.field_id not in ours.field_ids), None)
        if missing is not None:
            raise ConnectorError(
                f"operator `{self._address.operator}`: column `{missing}` of {self._address} is required, and the rows don't have it; make "
                "it optional"
            )

    def _later(self, table: Table, run: str, done: int, after: int) -> tuple[set[str], int]:
        """Return the files that a run added after a checkpoint, and its last commit until then."""
        by_checkpoint: dict[int, Snapshot] = {}
        for snapshot in sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0):
            told = {} if snapshot.summary is None else snapshot.summary.additional_properties
            if told.get(RUN) == run:
                by_checkpoint[int(told[CHECKPOINT])] = snapshot
        locations = set[str]()
        while done > after:
            found = by_checkpoint.get(done)
            if found is None or found.summary is None:
                raise ConnectorError(
                    f"operator `{self._address.operator}`: the snapshot of checkpoint {done} of {self._address} has expired, so its rows "
                    f"can't be taken back; keep snapshots for longer, and begin without the checkpoint or from checkpoint {done}"
                )
            locations.update(added_files(table, found, self._address))
            done = int(found.summary.additional_properties[PREVIOUS])
        return locations, done

    def _live(self, table: Table, locations: set[str]) -> Iterable[DataFile]:
        """Return the table's entries for files. Raises ConnectorError if one is no longer in the table."""
        current = table.current_snapshot()
        manifests = [] if current is None else current.manifests(table.io)
        entries = (entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io))
        found = {entry.data_file.file_path: entry.data_file for entry in entries if entry.data_file.file_path in locations}
        gone = min(locations.difference(found), default=None)
        if gone is not None:
            raise ConnectorError(
                f"operator `{self._address.operator}`: {gone} is no longer a file of {self._address}, because it was rewritten or deleted, "
                "so its rows can't be taken back; remove them from the table, or begin without the checkpoint"
            )
        return found.values()


def commit(table: Table, transaction: Transaction) -> None:
    """Commit a transaction once. `Transaction.commit_transaction` would repeat it on top of a commit of another process, which may
    be one of the same checkpoint.
    """
    from pyiceberg.table.update import AssertTableUUID

    required = (*transaction._requirements, AssertTableUUID(uuid=table.metadata.table_uuid))  # noqa: SLF001 -- has no other reader
    table.catalog.commit_table(table, required, transaction._updates)  # noqa: SLF001
