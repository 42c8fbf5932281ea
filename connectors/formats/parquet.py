"""The source of Parquet files: a split is a few row groups, whose event times the files' statistics bound before it is read.

>>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
>>> path = tempfile.mkdtemp() + "/a.parquet"
>>> pq.write_table(pa.table({"ts": [1, 2], "word": ["a", "b"]}), path)
>>> source = read_parquet(path, event_time="ts")
>>> source.start()
>>> reader = source.reader(0, 1)
>>> reader.watermark(), reader.poll(10).to_rows()
(1000, [{'ts': 1, 'word': 'a'}, {'ts': 2, 'word': 'b'}])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.columns import Columns
from ...engine.errors import ConnectorError, FlowError
from ...engine.expressions.trees.text import text_of
from ...engine.expressions.trees.tree import Tree
from ...engine.needed import Needed
from ...engine.plan.filtered_sources import compared_column
from ...engine.time.duration import Duration
from ...engine.time.event_time import EventTime
from ..exchange.exchange_folder import ExchangeFolder
from ..files.one_schema import fitted
from ..files.paths import Paths
from ..files.remote import is_remote
from ..files.splits import Split
from ..followed.follow import Follow, follow_of
from ..quiet import FOLLOWED, event_time_of
from .file_source import FileSource, refuse_duplicates
from .inferred import Types, schema_of
from .row_groups import open_parquet, read_row_groups, time_bounds
from .statistics import GroupBounds, none_meets

ROWS_PER_SPLIT = 131_072
"""Smaller row groups are read together, so that opening a file costs little compared with reading it."""


def read_parquet(
    path: Paths,
    *,
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    idle_after: Duration | None = None,
    columns: Sequence[str] | None = None,
    schema: Types | None = None,
    follow: bool = False,
    poll_every: Duration = "1s",
    max_age: Duration = "7d",
    name: str = "read_parquet",
) -> ParquetSource:
    """Read rows of Parquet files: a file, a folder (all `*.parquet` below it), a glob, or a list of these. The stream ends with
    the last row. Each may be a URL that fsspec opens, such as "s3://bucket/in"; its package must be installed, and fsspec's
    settings must grant access.

    `event_time` names the event time column: timestamps, dates, or integers that count `unit` ("s", "ms", "us", "ns") since the
    Unix epoch; a row may be up to `max_delay` older than one before it in its file. `columns` reads only some columns, in that
    order. Columns that the flow never reads are not decoded (`flow.explain()` shows which are read). In a folder that Spark's
    streaming file sink wrote, only the files named in its log count, as for Spark itself. All files must have the same columns; a
    column that is all null in one file takes its type from the others. The start of the job raises ConnectorError naming file and
    column where the input doesn't fit. `schema` has the types of all columns, if the files present at the start can't show them.

    Files in folders `region=eu/day=2026-01-31` below `path` have the columns `region` and `day`: texts, unless `schema` has
    their types, which it may have alone. `__HIVE_DEFAULT_PARTITION__` is null. If a file has such a column with another value,
    reading it raises ConnectorError that names the file.

    The columns of local files are known when the flow is written, if there is a file then: the footer of one is read. Other
    columns at the start raise ConnectorError.

    With `follow=True` the stream continues with files that appear later, until the job is stopped. The folder is listed every
    `poll_every`, or less often if that takes more than a tenth of a worker's time. Each file is read once, by one worker; a
    worker reads its files in the order of their modification times. A file must be complete when it appears: write it elsewhere
    on the same file system, or under a name that begins with `.` or `_`, and rename it. A file that changes after it was read, or
    is removed before it was read to its end, fails the job with a ConnectorError that names it.

    Checkpoints hold 32 bytes for each file that was read, until its modification time is `max_age` before that of a newer one.
    Files as old as that are not read: files must not arrive that late or change after that time. Rows may be up to `max_delay`
    older than rows of files that appeared earlier. Event time stands still while no file appears,
    unless `idle_after` is given: once no row has appeared for that long, it follows the clock, `max_delay` behind it. A row that
    is read later is late if it is older. Give `idle_after` only for event times that follow the clock.
    """
    spec = event_time_of(event_time, unit, max_delay, idle_after, name=name, ends=None if follow else FOLLOWED)
    source = ParquetSource(path, spec, columns, schema, follow_of(follow, poll_every, max_age, name, may_grow=False), name)
    source.look()
    return source


class ParquetSource(FileSource):
    """A source whose splits are runs of row groups in file order, assigned to the workers in turn."""

    extensions = (".parquet",)

    def __init__(
        self,
        paths: Paths,
        event_time: EventTime | None,
        columns: Sequence[str] | None,
        types: Types | None,
        follow: Follow | None,
        name: str,
    ) -> None:
        super().__init__(paths, event_time, follow, name)
        self._columns = None if columns is None else _listed(columns, name)
        self._given = schema_of(types, name)
        self._all = self._schema = pa.schema([])
        self._shown: tuple[str, pa.Schema] | None = None
        """A file that was there when the flow was written, and the columns that it showed; the start refuses others."""
        self.conditions = ()

    def reading(self, needed: Needed) -> ParquetSource:
        return self._reading(needed)

    def where(self, conditions: Sequence[Tree]) -> ParquetSource:
        source = copy(self)
        source.conditions = tuple(conditions)
        return source

    def describe(self) -> str:
        conditions = ", ".join(text_of(condition) for condition in self.conditions if compared_column(condition) is not None)
        return "; ".join(filter(None, (super().describe(), conditions and f"skips row groups without {conditions}")))

    def look(self) -> None:
        """Note the columns of the first local file, if it can be read now; the start reports its problems."""
        if any(map(is_remote, self._paths)):
            return
        try:
            path = next(file for each in self._paths for file in self._list(each))
            with open_parquet(path, self.name) as file:
                merged = self._merged(self.folders.of(path))
                merged.add(path, self.folders.with_types(path, file.schema_arrow, self._given))
        except (StopIteration, ConnectorError, pa.ArrowException, OSError):
            return
        self._shown = path, merged.schema

    def _merged(self, in_folders: Collection[str]) -> _MergedSchema:
        given = self._given if set(self._given.names) - set(in_folders) else pa.schema([])
        return _MergedSchema(self.name, self._columns, given)

    def _list(self, path: str) -> list[str]:
        exchange = ExchangeFolder(path)
        if not exchange.log.is_dir():
            return super()._list(path)
        last = exchange.latest()
        return [] if last is None else [file.path for file in exchange.committed(last)]

    def _plan(self, files: Sequence[str]) -> list[Split]:
        splits: list[Split] = []
        in_folders = {name for path in files for name in self.folders.of(path)}
        merged = self._merged(in_folders)
        for path in files:
            with open_parquet(path, self.name) as file:
                merged.add(path, self.folders.with_types(path, file.schema_arrow, self._given))
                splits += [self._wanted(split, file) for split in self._split(path, file.metadata, len(splits))]
        if self._event_time is not None and (splits or self.follow is not None):
            self._event_time.check(merged.schema, self.name)
        if self.follow is not None and not merged.schema.names:
            raise ConnectorError(f"operator `{self.name}`: there is no file yet from which to infer the columns; give them in `schema`")
        self._all = self._as_shown(merged.schema)
        self.narrow()
        return splits

    def narrow(self) -> None:
        self._schema = self._to_read(self._all)

    def peek(self, path: str) -> Split:
        if self._event_time is None:
            return Split(path, 0)
        with open_parquet(path, self.name) as file:
            low, high = self._time_bounds(path, file.metadata, None)
        return Split(path, 0, min_time=low, max_time=high)

    def admit(self, path: str) -> bool:
        with open_parquet(path, self.name) as file:
            merged = _MergedSchema(self.name, self._columns, self._all)
            merged.add(path, self.folders.with_types(path, file.schema_arrow, self._all))
            late = next((field.name for field in merged.schema if field.type != self._all.field(field.name).type), None)
            if late is not None:
                raise ConnectorError(
                    f"operator `{self.name}`: column `{late}` is {merged.schema.field(late).type} in {path}, and was all null in the files "
                    "of the start; give its type in `schema`"
                )
            return bool(file.metadata.num_rows)

    def _as_shown(self, found: pa.Schema) -> pa.Schema:
        """Return the columns of the files in the order in which they were known. Raises ConnectorError if they are others."""
        if self._shown is None or not found.names:
            return found
        path, shown = self._shown
        for name in [*shown.names, *found.names]:
            before, now = (schema.field(name).type if name in schema.names else None for schema in (shown, found))
            if before != now and not (before is not None and now is not None and pa.types.is_null(before)):
                was, is_now = ("missing" if kind is None else str(kind) for kind in (before, now))
                raise ConnectorError(
                    f"operator `{self.name}`: column `{name}` is {is_now} now, and was {was} in {path} when the flow was written; run the "
                    "program again"
                )
        return pa.schema([found.field(name) for name in shown.names])

    def known_columns(self) -> Columns:
        if self._schema.names:
            return Columns.of(self._schema)
        if self._shown is not None:
            return Columns.of(self._to_read(self._shown[1]))
        if self._columns is not None:
            types = [self._given.field(name).type if name in self._given.names else pa.null() for name in self._columns]
            return Columns.of(self._to_read(pa.schema(list(zip(self._columns, types, strict=True)))))
        return Columns.of(self._given, complete=False)

    def _split(self, path: str, metadata: pq.FileMetaData, ordinal: int) -> list[Split]:
        splits: list[Split] = []
        for groups in _runs([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]):
            low, high = self._time_bounds(path, metadata, groups)
            splits.append(Split(path, ordinal + len(splits), row_groups=groups, min_time=low, max_time=high))
        return splits

    def _wanted(self, split: Split, file: pq.ParquetFile) -> Split:
        """Return the split, marked if its statistics or its folder show that the flow drops all its rows."""
        assert split.row_groups is not None
        found, folder = GroupBounds(file, split.row_groups), self.folders.of(split.path)

        def bounds(column: str) -> pa.Array | None:
            if column not in folder:
                return found.of(column)
            declared = self._given.field(column) if column in self._given.names else pa.field(column, pa.string())
            return pa.array([self.folders.value(split.path, declared).as_py()] * 2, declared.type)

        return replace(split, unwanted=none_meets(self.conditions, bounds)) if self.conditions else split

    def _time_bounds(self, path: str, metadata: pq.FileMetaData, groups: tuple[int, int] | None) -> tuple[int | None, int | None]:
        return (None, None) if self._event_time is None else time_bounds(metadata, self._event_time, groups)

    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        columns, coded = (self._columns, ()) if self.needed is None else (self._schema.names, self._coded(self.needed))
        for rows in read_row_groups(split, batch_rows, operator=self.name, columns=columns, coded=coded):
            whole = self.folders.completed(rows, split.path, self._schema)
            yield fitted(whole, self._schema_of(whole, coded), self.name)

    def _coded(self, needed: Needed) -> list[str]:
        """List the columns that may be read as dictionaries."""
        return [field.name for field in self._schema if field.name in needed.coded and field.type in _TEXTS]

    def _schema_of(self, rows: pa.RecordBatch, coded: Iterable[str]) -> pa.Schema:
        """Return the schema of the rows, with dictionaries for those of the columns `coded` that have them."""
        schema = self._schema
        for name in coded:
            if pa.types.is_dictionary(kind := rows.schema.field(name).type):
                schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
        return schema


_TEXTS = frozenset({pa.string(), pa.binary()})


class _MergedSchema:
    """The schema of all files, partly `given`: every file has the same columns in the same types, or all null."""

    def __init__(self, operator: str, columns: Sequence[str] | None, given: pa.Schema) -> None:
        self._operator, self._columns = operator, columns
        names = given.names if columns is None or not given.names else columns
        self._types = {name: given.field(name).type if name in given.names else pa.null() for name in names}
        self._first = "the schema before it" if names else ""
        self._seen_in = dict.fromkeys(names, self._first)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(list(self._types.items()))

    def add(self, path: str, schema: pa.Schema) -> None:
        refuse_duplicates(schema, path, self._operator)
        names = schema.names if self._columns is None else self._columns
        for name in names:
            if schema.get_field_index(name) < 0:
                raise ConnectorError(f"operator `{self._operator}`: {path} has no column `{name}`; it has: {', '.join(schema.names)}")
        if not self._first:
            self._first, self._types = path, {name: pa.null() for name in names}
        for name in dict.fromkeys([*self._types, *names]):
            self._add_column(path, name, schema)

    def _add_column(self, path: str, name: str, schema: pa.Schema) -> None:
        if name not in self._types or schema.get_field_index(name) < 0:
            has, lacks = (path, self._first) if name not in self._types else (self._first, path)
            raise ConnectorError(
                f"operator `{self._operator}`: column `{name}` is in {has} but not in {lacks}; all files need the same columns "
                "(columns=[...] reads only the shared ones)"
            )
        kind = schema.field(name).type
        if pa.types.is_null(self._types[name]):
            self._types[name], self._seen_in[name] = kind, path
        elif kind != self._types[name] and not pa.types.is_null(kind):
            raise ConnectorError(
                f"operator `{self._operator}`: column `{name}` is {self._types[name]} in {self._seen_in[name]} but {kind} in {path}; "
                "all files need the same types"
            )


def _runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Group row groups of these sizes into half-open ranges of about `ROWS_PER_SPLIT` rows each; none without rows."""
    runs: list[tuple[int, int]] = []
    first, gathered = 0, 0
    for group, count in enumerate(rows):
        if gathered and gathered + count > ROWS_PER_SPLIT:
            runs.append((first, group))
            first, gathered = group, 0
        gathered += count
    return [*runs, (first, len(rows))] if gathered else runs


def _listed(columns: Any, operator: str) -> list[str]:
    """Return the names in a user's list of columns. Raises FlowError if it isn't one."""
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise FlowError(f"operator `{operator}`: columns={columns!r:.200}: expected a list of column names")
    names = list(columns)
    if not all(isinstance(name, str) for name in names):
        raise FlowError(f"operator `{operator}`: columns={columns!r:.200}: expected a list of column names")
    return names
