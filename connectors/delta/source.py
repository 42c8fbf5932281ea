"""The source of a Delta Lake table: the files of one version of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...engine.errors import ConnectorError
from ...engine.time.duration import Duration, microseconds
from ...engine.time.event_time import EventTime
from ..parquet import ParquetSource
from .table import check_installed, opened

_CAN_READ = frozenset({"timestampNtz", "appendOnly", "invariants", "v2Checkpoint", "vacuumProtocolCheck"})
"""The features of tables whose files hold just the table's rows."""


def read_delta(
    path: str | Path,
    *,
    version: int | None = None,
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    columns: Sequence[str] | None = None,
    name: str = "read_delta",
) -> DeltaSource:
    """Rows of the Delta Lake table in the folder `path`, as it is when the job starts, or at `version`. The stream ends with the last row.

    `event_time`, `unit`, `max_delay` and `columns` are those of `read_parquet`. A job that goes on from a checkpoint reads the same version
    only if `version` says so. Needs `pip install 'evenflow[delta]'`.

    The start of the job raises ConnectorError if there is no such table or version, its files were removed (vacuumed), and for tables that
    are partitioned or have deletion vectors or mapped columns.
    """
    check_installed(name)
    spec = None if event_time is None else EventTime(event_time, unit, microseconds(max_delay, "max_delay"))
    return DeltaSource(str(Path(path).absolute()), version, spec, columns, name)


class DeltaSource(ParquetSource):
    """See `read_delta`."""

    guarantee = "exactly once (seeks to the checkpointed file and row of one version of the table)"

    def __init__(self, path: str, version: int | None, event_time: EventTime | None, columns: Sequence[str] | None, name: str) -> None:
        super().__init__(path, event_time, columns, None, None, name)
        self._version = version

    def _list(self, path: str) -> list[str]:
        table = opened(path, self.name, self._version)
        problem = None
        partitions = table.metadata().partition_columns
        if partitions:
            problem = f"is partitioned by {', '.join(partitions)}"
        features = sorted(set(table.protocol().reader_features or ()) - _CAN_READ)
        if features:
            problem = f"has {', '.join(features)}"
        if problem is not None:
            raise ConnectorError(f"operator `{self.name}`: {path} {problem}, which isn't supported; read it with Spark and from_spark")
        files = sorted(table.file_uris())
        gone = next((file for file in files if not Path(file).exists()), None)
        if gone is not None:
            raise ConnectorError(
                f"operator `{self.name}`: {gone} of version {table.version()} of {path} is gone, presumably vacuumed; read a newer version"
            )
        if not files:
            raise ConnectorError(f"operator `{self.name}`: version {table.version()} of {path} has no rows")
        return files
