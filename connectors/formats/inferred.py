"""The base of sources of untyped files: the driver examines the start of every file and determines one schema for all.

Workers read with that schema, so a value that doesn't fit is an error, not another type.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa

from ...engine.columns import Columns
from ...engine.errors import ConnectorError
from ...engine.functions.rows_encoder import arrow_schema
from ...engine.time.event_time import EventTime
from ..files.compression import Compression, open_file
from ..files.paths import Paths
from ..files.splits import Split
from ..followed.follow import Follow
from .file_source import refuse_duplicates, whole_files
from .floats import ChangedValue
from .lines_source import LinesSource

Types: TypeAlias = "pa.Schema | Mapping[str, pa.DataType | str | type]"
"""Types of some or all columns: a schema, or a dict like `{"price": "decimal128(10, 2)", "at": pa.timestamp("us"), "n": int}`."""


ADVICE = "correct the file, or give the column's type in `schema`"

START = 65_536
"""The number of first bytes that show if a file is empty."""


class InferredSource(LinesSource):
    """A source with whole files as splits; types come from the user, or from the first block of each file."""

    def __init__(
        self, paths: Paths, event_time: EventTime | None, types: Types | None, compression: Compression, follow: Follow | None, name: str
    ) -> None:
        super().__init__(paths, event_time, compression, follow, name)
        self._given = schema_of(types, name)
        self._schema = self._given
        self._known = False
        self._first: str | None = None
        """A file that was there at the start and had rows."""

    def _plan(self, files: Sequence[str]) -> list[Split]:
        filled = [path for path in files if self._has_rows(self._start_of(path))]
        merged: pa.Schema | None = None
        for path in filled:
            with explained(self.name, path, advise=self._advice):
                found = self._peek(path)
                refuse_duplicates(found, path, self.name)
                self.folders.check_same(path, filled[0])
                found = self.folders.with_types(path, found, self._given)
                merged = found if merged is None else self._merge(filled[0], merged, path, found)
        if merged is None and self.follow is not None:
            if not self._given.names:
                raise ConnectorError(
                    f"operator `{self.name}`: there is no file with rows yet from which to infer the columns; give them in `schema`"
                )
            merged = self._given
        if merged is not None:
            self._schema, self._known = merged, True
            self._first = filled[0] if filled else None
            self._check(merged)
        return whole_files(filled)

    def known_columns(self) -> Columns:
        return Columns.of(self._schema, complete=self._known)

    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        given = 0
        stream = self._stream(split.path)
        while True:
            with explained(self.name, split.path, f" after row {given}", self._advice):
                rows = next(stream, None)
            if rows is None:
                return
            given += rows.num_rows
            yield rows

    def _check(self, schema: pa.Schema) -> None:
        missing = [name for name in self._given.names if schema.get_field_index(name) < 0]
        if missing:
            raise ConnectorError(
                f"operator `{self.name}`: `schema` has a column `{missing[0]}` that no file has: {', '.join(schema.names)}"
            )
        if self._event_time is not None:
            self._event_time.check(schema, self.name)

    @abstractmethod
    def _peek(self, path: str) -> pa.Schema:
        """Return columns and types by the user's types and the file's first block."""

    @abstractmethod
    def _stream(self, path: str) -> Iterator[pa.RecordBatch]:
        """Yield the file's rows in `self._schema`."""

    @contextmanager
    def _unchanged(self, path: str, place: str, first: int) -> Iterator[None]:
        """Convert a ChangedValue to a ConnectorError with the file, `place` and the row; `first`: the number of the first row."""
        try:
            yield
        except ChangedValue as error:
            raise ConnectorError(f"operator `{self.name}`: {path} can't be read {place} {first + error.row}: {error.problem}") from error

    def _advice(self, problem: str) -> str:
        """Return advice for the user about Arrow's `problem` with a file."""
        return ADVICE

    def _has_rows(self, start: bytes) -> bool:
        """Return True if a file that starts with these bytes has more than a header; Arrow rejects other files.

        `start`: the whole file, if it is shorter than `START`.
        """
        return bool(start.strip())

    def _file(self, path: str) -> pa.NativeFile:
        return open_file(path, self._compression)

    def admit(self, path: str) -> bool:
        if not self._has_rows(self._start_of(path)):
            return False
        if self._first is not None:
            self.folders.check_same(path, self._first)
        return True

    def _start_of(self, path: str) -> bytes:
        with explained(self.name, path), self._file(path) as file:
            return bytes(file.read(START))

    def _merge(self, first: str, merged: pa.Schema, path: str, found: pa.Schema) -> pa.Schema:
        """Merge the schema of the files so far, which start with `first`, with that of `path`."""
        try:
            return pa.unify_schemas([merged, found], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise ConnectorError(
                f"operator `{self.name}`: {path} does not fit the files before it: {error}; give the type in `schema`"
            ) from error


@contextmanager
def explained(operator: str, path: str, place: str = "", advise: Callable[[str], str] = lambda problem: ADVICE) -> Iterator[None]:
    """Convert Arrow's error about a file to a ConnectorError that names the file and says what to do."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        problem = str(error).strip()
        raise ConnectorError(f"operator `{operator}`: {path} can't be read{place}: {problem}; {advise(problem)}") from error


def schema_of(types: Types | None, operator: str) -> pa.Schema:
    """Return the user's types as a schema, without columns if there are none. Raises FlowError for an unknown type."""
    return arrow_schema(types, operator) or pa.schema([])
