"""A table of a database that a sink writes, and the marker beside it, which says how far the sink's checkpoints are in the table.

A commit is one transaction of rows and marker. So rows and marker are there together or not at all, and whoever repeats a commit reads in
the marker that there is nothing left to do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from ...engine.columns import Columns
from ...engine.errors import ConnectorError

MARKERS = "evenflow_commits"
"""The table of markers, which the sink makes beside its own if it isn't there."""

SECONDS = 20
"""The longest wait for a connection, and for a lock that another client holds."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is written where: `table` may be "schema.table"; `key`: the columns that say which row is replaced, empty to append.

    `version`: a row replaces one of its key only if this column is not smaller there; None: it always does.
    """

    operator: str
    table: str
    key: tuple[str, ...] = ()
    version: str | None = None

    def problem(self, there: Mapping[str, object]) -> str | None:
        """What is wrong with a table that has these columns, or None."""
        for name in (*self.key, *(() if self.version is None else (self.version,))):
            if name not in there:
                return f"table `{self.table}` has no column `{name}`; it has {', '.join(there) or 'no columns'}"
        return None

    def missing_in(self, columns: Columns) -> str | None:
        """Why rows of which this is known can't replace others, or None."""
        for name in (*self.key, *(() if self.version is None else (self.version,))):
            if columns.lacks(name):
                return f"no column `{name}` among {columns.listed()}"
        return None


class Table(ABC):
    """A table of one database. Picklable; each method opens a connection of its own, and closes it."""

    def __init__(self, target: Target) -> None:
        self.target = target

    @abstractmethod
    def begin(self, sink: str, run: str) -> None:
        """Check the table and write the first marker of a run, before any of its checkpoints.

        Raises ConnectorError: no database answers or lets the user in, there is no such table, it has another shape, or it can't be
        written.
        """

    @abstractmethod
    def commit(self, sink: str, run: str, checkpoint: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Write the rows of a checkpoint of a run, unless they are there. `rows` are in the order in which they shall count.

        Raises ConnectorError; the table is then as it was.
        """

    def check_columns(self, rows: pa.RecordBatch, there: Sequence[str]) -> None:
        """Raises ConnectorError for rows that have a column that the table hasn't, or lack one of the key."""
        missing = [name for name in rows.schema.names if name not in there]
        if missing:
            self.fail(f"table `{self.target.table}` has no column `{missing[0]}`: it has {', '.join(there)}; add it, or select() others")
        for name in self.target.key:
            if name not in rows.schema.names:
                self.fail(f"rows have no column `{name}`, which is of the key; they have {', '.join(rows.schema.names)}")

    def fail(self, problem: str, cause: BaseException | None = None) -> NoReturn:
        """Raises ConnectorError with the operator's name."""
        raise ConnectorError(f"operator `{self.target.operator}`: {problem}") from cause

    def fail_without_index(self) -> NoReturn:
        """Raises ConnectorError for a table in which the key doesn't tell which row is replaced."""
        has = f"no primary key or unique index of `{self.target.table}` has just the columns {', '.join(self.target.key)}"
        self.fail(f"{has}; create one to replace rows by it")

    def fail_without_marker(self, run: str, checkpoint: int) -> NoReturn:
        """Raises ConnectorError for a marker that somebody removed."""
        self.fail(
            f"the marker of run {run} is gone from table `{MARKERS}`, so it can't be told whether checkpoint {checkpoint} is in "
            f"`{self.target.table}`; put the row back (a copy of the database has it), or start without the checkpoint"
        )
