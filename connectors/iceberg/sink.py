"""The sink into an Iceberg table: the rows of a checkpoint become part of the table in one snapshot."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ...engine.errors import ConnectorError
from ...engine.sink import Sink, SinkWriter
from .address import TableAddress
from .committing import Committing, WrittenFile
from .writer import IcebergWriter


def write_iceberg(
    table: str, *, catalog: str = "default", options: Mapping[str, str] | None = None, name: str = "write_iceberg"
) -> IcebergSink:
    """Write rows into an Iceberg table, exactly once: each checkpoint with rows becomes a snapshot of the table.

        counts.write(ef.write_iceberg("shop.counts", catalog="prod", options={"type": "rest", "uri": "http://catalog:8181"}))

    `table`: the namespace and the name. `catalog` and `options` are those of pyiceberg's `load_catalog`: the name of a catalog, and
    its settings unless pyiceberg's configuration has them on every node. Catalogs of the types "sql" and "rest" are supported. Keep
    passwords and tokens out of the program with `ef.secret`. For tables on S3, `options` have the endpoint and credentials
    ("s3.endpoint", "s3.region", "s3.access-key-id", "s3.secret-access-key"), or the variables of AWS on every node.

    A missing namespace and table are created when the job starts, the table without columns: it gets those of the first rows. Rows
    are appended to an existing table, and new columns are added to it. Raises ConnectorError for a column of another type, and for
    types that Iceberg lacks, such as durations. Times are written in microseconds; those with a time zone in UTC. Partitioned
    tables and format version 3 are refused.

    Snapshots have the properties `evenflow.job`, `evenflow.run` and `evenflow.checkpoint`. The table's property `evenflow.run.RUN`
    has the last checkpoint; don't remove it while the run may be resumed. Needs `pip install 'evenflow[iceberg]'`.
    """
    return IcebergSink(TableAddress(table, catalog, options, name))


class IcebergSink(Sink):
    """The sink that `write_iceberg` creates."""

    guarantee = "exactly once (a snapshot of the table appears when the checkpoint that holds its rows completes)"

    def __init__(self, address: TableAddress) -> None:
        self.name, self._address = address.operator, address
        self._job, self._job_run, self._continues = f"job/{self.name}", "", False
        self._run = uuid.uuid4().hex[:8]
        self._table_id = ""

    def given_settings(self) -> dict[str, Any]:
        return {"address": self._address}

    def of_job(self, job: str, operator: str, checkpoints: str | None) -> None:
        self._job = f"{job}/{operator}"

    def of_run(self, run: str, *, continues: bool) -> None:
        self._job_run, self._continues = run[:8], continues

    def start(self) -> None:
        self._run = self._job_run or uuid.uuid4().hex[:8]
        self._table_id = self._committing().begin(self._run, continues=self._continues)

    def stop(self) -> None:
        self._address.close()

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        if not self._table_id:
            raise ConnectorError(f"operator `{self.name}`: start() finds the table and must be called before writer()")
        return IcebergWriter(self._address, self._run, self._table_id, index)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        files = [WrittenFile.of(entry) for each in committables for entry in each["files"]]
        for run, its in groupby(sorted(files, key=_run_of), key=_run_of):
            self._committing().add(run, checkpoint, list(its))
        return []

    @property
    def retractable(self) -> bool:
        return True

    def retract(self, after: int) -> list[Any]:
        """Remove the files of later checkpoints from the table. Readers keep the rows that they have read."""
        self._committing().retract(self._run, after)
        return []

    def _committing(self) -> Committing:
        return Committing(self._address, self._job)


def _run_of(file: WrittenFile) -> str:
    return file.run
