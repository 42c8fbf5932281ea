"""The arguments of `read_iceberg`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...engine.errors import FlowError
from ...engine.time.duration import Duration, seconds
from ..quiet import FOLLOWED, event_time_of
from .address import TableAddress
from .following import FollowedIcebergSource
from .snapshot_source import IcebergSource


def read_iceberg(
    table: str,
    *,
    catalog: str = "default",
    options: Mapping[str, str] | None = None,
    snapshot: int | None = None,
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    idle_after: Duration | None = None,
    columns: Sequence[str] | None = None,
    follow: bool = False,
    poll_every: Duration = "1s",
    skip_changes: bool = False,
    name: str = "read_iceberg",
) -> IcebergSource:
    """Read the rows of an Iceberg table, as it is when the job starts, or at the snapshot with the id `snapshot`. The stream ends with
    the last row.

    `table`, `catalog` and `options` are as in `write_iceberg`; `event_time`, `unit`, `max_delay` and `columns` as in `read_parquet`.
    Columns have the table's types: times in microseconds, those with a time zone in UTC, a UUID as its 16 bytes. A file that was
    written before a column was added has nulls there. A job that resumes from a checkpoint reads the same snapshot only if
    `snapshot` is given. Needs `pip install 'evenflow[iceberg]'`.

    With `follow=True` the stream continues with the rows that later snapshots of the main branch add, each once, in the order of the
    snapshots, until the job is stopped. The catalog is asked every `poll_every`. Snapshots that only rearrange rows (compaction) add
    none. One that deletes or overwrites rows fails the job, unless `skip_changes` is True: then such snapshots are skipped,
    including the rows that they add. Rows may be up to `max_delay` older than rows of earlier snapshots.
    `idle_after` is as in `read_parquet`.

    The start of the job raises ConnectorError if there is no such table or snapshot, for rows that are deleted by delete files, for
    files that aren't Parquet, for format version 3, and for column types that Arrow doesn't hold exactly. While following, the job
    fails for new columns that the flow reads, changed types and names, and snapshots that expired or were rolled back before they
    were read.
    """
    address = TableAddress(table, catalog, options, name)
    if snapshot is not None and (isinstance(snapshot, bool) or not isinstance(snapshot, int)):
        raise FlowError(f"operator `{name}`: snapshot is {snapshot!r}; expected the id of a snapshot, a whole number")
    spec = event_time_of(event_time, unit, max_delay, idle_after, name=name, ends=None if follow else FOLLOWED)
    if follow:
        every = seconds(poll_every, "poll_every")
        if not every:
            raise FlowError(f"operator `{name}`: poll_every is {poll_every!r}; it must be above 0")
        return FollowedIcebergSource(address, snapshot, spec, columns, every, skip_changes)
    if skip_changes:
        raise FlowError(f"operator `{name}`: skip_changes is for follow=True; a single snapshot has no changes to skip")
    return IcebergSource(address, snapshot, spec, columns)
