"""A table of a database that a sink writes, and its marker, which records how many of the sink's checkpoints are in the table.

A commit is one transaction of rows and marker. So rows and marker appear together or not at all, and a repeated commit reads in
the marker that its work is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from ...engine.columns import Columns
from ...engine.errors import ConnectorError
from ...engine.updates import Updates

MARKERS = "evenflow_commits"
"""The table of markers, which the sink creates next to its own unless it exists."""

SECONDS = 20
"""The longest wait for a connection, and for a lock that another client holds."""


@dataclass(frozen=True, slots=True)
class TableTarget:
    """The destination of rows: `table` may be "schema.table"; `key`: the columns that identify the row to replace, empty to append.

    `version`: a row replaces one of its key only if this column is not smaller; None: it always does.
    """

    operator: str
    table: str
    key: tuple[str, ...] = ()
    version: str | None = None

    def problem(self, there: Mapping[str, object]) -> str | None:
        """Return what is wrong with a table that has these columns, or None."""
        for name in (*self.key, *(() if self.version is None else (self.version,))):
            if name not in there:
                return f"table `{self.table}` has no column `{name}`; it has {', '.join(there) or 'no columns'}"
        return None

    def missing_in(self, columns: Columns) -> str | None:
        """Return why rows with these known columns can't replace others, or None if they can."""
        for name in (*self.key, *(() if self.version is None else (self.version,))):
            if columns.lacks(name):
                return f"no column `{name}` among {columns.listed()}"
        return None

    def other_key(self, updates: Updates) -> str | None:
        """Return why the key can't identify the rows that these updates replace, or None if it can.

        Rows of one group may have several keys, one after the other, if the sink is told which rows are gone.
        """
        return updates.confused_by(self.key, exact=self.version is not None) if self.key else None


class SqlTable(ABC):
    """A table of one database. Picklable; each method opens and closes its own connection."""

    def __init__(self, target: TableTarget) -> None:
        self.target = target

    @abstractmethod
    def begin(self, sink: str, run: str) -> None:
        """Check the table and write the first marker of a run, before any of its checkpoints.

        Raises ConnectorError if no database answers, if it rejects the user, and if the table is missing, has another shape or
        can't be written.
        """

    @abstractmethod
    def commit(self, sink: str, run: str, checkpoint: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Write the rows of a run's checkpoint, in the order in which they count, unless they are in the table already.

        Rows with a column of weights are deleted, by their key. Raises ConnectorError; the table is then unchanged.
        """

    def check_columns(self, rows: pa.RecordBatch, there: Sequence[str]) -> None:
        """Raise ConnectorError for rows that have a column unknown to the table, or lack one of the key."""
        missing = [name for name in rows.schema.names if name not in there]
        if missing:
            self.fail(f"table `{self.target.table}` has no column `{missing[0]}`: it has {', '.join(there)}; add it, or select() others")
        for name in self.target.key:
            if name not in rows.schema.names:
                self.fail(f"rows have no column `{name}`, which is part of the key; they have {', '.join(rows.schema.names)}")

    def fail(self, problem: str, cause: BaseException | None = None) -> NoReturn:
        """Raise ConnectorError with the operator's name."""
        raise ConnectorError(f"operator `{self.target.operator}`: {problem}") from cause

    def fail_without_index(self) -> NoReturn:
        """Raise ConnectorError for a table whose unique columns are not the key."""
        has = f"no primary key or unique index of `{self.target.table}` has just the columns {', '.join(self.target.key)}"
        self.fail(f"{has}; create one to replace rows by it")

    def fail_without_marker(self, run: str, checkpoint: int) -> NoReturn:
        """Raise ConnectorError for a marker that was removed."""
        self.fail(
            f"the marker of run {run} is missing from table `{MARKERS}`, so it can't be told whether checkpoint {checkpoint} is in "
            f"`{self.target.table}`; put the row back (a copy of the database has it), or start without the checkpoint"
        )
