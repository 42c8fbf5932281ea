"""The sink into a Delta Lake table: the files of a checkpoint become part of the table in one version.

The version's log entry also contains the checkpoint's number, as a transaction of the run that wrote the files. So a repeated
commit finds the work done, and each row is in the table once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.errors import ConnectorError
from ..files.file_sink import Encoder
from ..files.folder_sink import FolderSink
from ..spark.sink import SparkEncoder
from ..spark.types import spark_refuses
from .log import LOG
from .table import check_installed, open_table

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction, RemoveAction


def write_delta(path: str | Path, *, name: str = "write_delta") -> DeltaSink:
    """Write rows into the Delta Lake table in the folder `path`, exactly once: each checkpoint with rows becomes a version of the
    table.

        counts.write(ef.write_delta("/data/counts"))

    A missing table is created with the columns of the first rows; rows are appended to an existing one. New columns are added to
    the table. Raises ConnectorError for a column that has another type in the table, and for a type that Spark's Parquet reader
    lacks. Timestamps are written in microseconds. Spark, DuckDB, Polars and others can read the table while the job runs; they
    see a checkpoint whole or not at all.

    All workers and the coordinator access `path` as a local folder. Needs `pip install 'evenflow[delta]'`.
    """
    check_installed(name)
    return DeltaSink(path, name)


class DeltaSink(FolderSink):
    """The sink that `write_delta` creates."""

    guarantee = "exactly once (a version of the table appears when the checkpoint that holds its rows completes)"
    extension = ".parquet"

    def __init__(self, path: str | Path, name: str) -> None:
        super().__init__(path, overwrite=False, append=True, name=name)

    def start(self) -> None:
        super().start()
        if (self.folder / LOG).exists():
            table = open_table(str(self.folder), self.name)
            partitions = table.metadata().partition_columns
            if partitions:
                raise ConnectorError(
                    f"operator `{self.name}`: {self.folder} is partitioned by {', '.join(partitions)}, which isn't supported"
                )
        elif any(not path.name.startswith(".") for path in self.folder.iterdir()):
            raise ConnectorError(f"operator `{self.name}`: {self.folder} is not empty and not a Delta table; choose another folder")

    def check_type(self, kind: pa.DataType) -> str | None:
        return spark_refuses(kind)

    def encoder(self, file: BinaryIO, schema: pa.Schema) -> Encoder:
        return SparkEncoder(file, schema, self.name)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        super().commit(checkpoint, committables)
        for run, names in groupby(sorted((part["final"] for part in committables), key=_run_of), key=_run_of):
            self._add(run, checkpoint, sorted(names))
        return []

    def retract(self, after: int) -> list[Any]:
        """Remove the files of later checkpoints from the table, then delete them. Readers keep the rows that they have read."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import RemoveAction

        path, later = str(self.folder), set(self.later_than(after))
        if later and DeltaTable.is_deltatable(path):
            table = open_table(path, self.name)
            there = later.intersection(Path(uri).name for uri in table.file_uris())
            now = time.time_ns() // 1_000_000
            removed: list[AddAction | RemoveAction] = [RemoveAction(name, True, now) for name in sorted(there)]
            try:
                if removed:
                    written = _properties(self.whole_run, after)
                    table.create_write_transaction(removed, "append", table.schema(), [], commit_properties=written)
            except DeltaError as error:
                raise ConnectorError(f"operator `{self.name}`: rows can't be removed from {path}: {error}") from error
        return super().retract(after)

    def _add(self, run: str, checkpoint: int, names: Sequence[str]) -> None:
        """Add files of a run to the table, unless it contains them."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import create_table_with_add_actions

        path, written = str(self.folder), _properties(run, checkpoint)
        schema = _joined([pq.read_schema(self.folder / name) for name in names], self.name)
        actions = [_action(self.folder / name) for name in names]
        try:
            if not DeltaTable.is_deltatable(path):
                create_table_with_add_actions(path, _delta(schema), actions, partition_by=[], commit_properties=written)
                return
            table = open_table(path, self.name)
            done = table.transaction_version(_app(run))
            if done is not None and done >= checkpoint:
                return
            self._fit(table, schema)
            open_table(path, self.name).create_write_transaction([*actions], "append", _delta(schema), [], commit_properties=written)
        except DeltaError as error:
            raise ConnectorError(f"operator `{self.name}`: checkpoint {checkpoint} can't become a version of {path}: {error}") from error

    def _fit(self, table: DeltaTable, schema: pa.Schema) -> None:
        """Add new columns to the table. Raises ConnectorError for a column of another type."""
        there = {field.name: field for field in table.schema().fields}
        ours = {field.name: field for field in _delta(schema).fields}
        for name, field in ours.items():
            if name in there and there[name].type != field.type:
                raise ConnectorError(
                    f"operator `{self.name}`: column `{name}` is {_description(there[name])} in {self.folder}, and "
                    f"{_description(field)} in the rows; "
                    "cast() it to the table's type"
                )
        new = [field for name, field in ours.items() if name not in there]
        if new:
            table.alter.add_columns(new)


def _joined(schemas: Sequence[pa.Schema], operator: str) -> pa.Schema:
    try:
        return pa.unify_schemas(schemas)
    except pa.ArrowException as error:
        raise ConnectorError(f"operator `{operator}`: workers wrote a column in different types: {error}") from error


def _action(file: Path) -> AddAction:
    from deltalake.transaction import AddAction

    status = file.stat()
    stats = json.dumps({"numRecords": pq.read_metadata(file).num_rows})
    return AddAction(file.name, status.st_size, {}, status.st_mtime_ns // 1_000_000, True, stats)


def _delta(schema: pa.Schema) -> Any:
    from deltalake import Schema

    return Schema.from_arrow(schema)


def _properties(run: str, checkpoint: int) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(_app(run), checkpoint)])


def _app(run: str) -> str:
    """Return the name of a run in the table's log."""
    return f"evenflow-{run}"


def _run_of(name: str) -> str:
    return name.split("-")[2]


def _description(field: Any) -> str:
    kind: Mapping[str, Any] | str = json.loads(field.type.to_json())
    return kind if isinstance(kind, str) else json.dumps(kind)
