"""The base of the sinks that write files: a part is hidden while it is written, and visible when its checkpoint completes.

A visible part is `part-CHECKPOINT-RUN-WORKER-WRITER-N.EXTENSION`, in the folder of its partition if the sink has partitions. RUN
is the same in all starts of a program that continue a run. Readers skip hidden names, so they never see a row that a recovery
from the newest checkpoint could retract. `local_parts.py` and `remote_parts.py` say where hidden parts are.
"""

from __future__ import annotations

import contextlib
import posixpath
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.columns import Columns
from ...engine.errors import ConnectorError, FlowError
from ...engine.sink import Sink, SinkWriter
from .layout import MOST_OPEN, MOST_PARTS, Layout
from .local_parts import LocalParts
from .one_schema import fitted, settled
from .part_store import Needed, Owner, PartId, PartStore
from .partitions import Partitions
from .remote import folder_or_store, is_remote
from .remote_parts import STAGING, RemoteParts

_OF_RUN = ("run", "whole_run", "_job_run", "_continues", "_operator", "_fenced")
"""The attributes of a sink that belong to a run of a job, not to its settings."""


class Encoder(ABC):
    """An encoder of rows of one schema into one open file."""

    @abstractmethod
    def write(self, rows: pa.RecordBatch) -> None:
        """Append `rows`."""

    @abstractmethod
    def finish(self) -> None:
        """Write buffered rows and the footer; the caller closes the file."""

    @property
    def waiting(self) -> int:
        """The bytes of rows that are buffered, as they are in memory."""
        return 0


class FileSink(Sink):
    """A sink into a folder of part files, at least one per worker and checkpoint with rows. A subclass supplies the format."""

    remedies = "overwrite=True or append=True"
    """The options for a folder that is not empty, for error messages."""

    guarantee = "exactly once (a file appears when the checkpoint that holds it completes)"
    extension: str
    widens = False
    """True if a column may be of a wider type in later files, because the files have no types."""

    def __init__(self, path: str | Path, overwrite: bool, append: bool, name: str, layout: Layout | None = None) -> None:
        if overwrite and append:
            raise FlowError(f"operator `{name}`: choose one of overwrite=True and append=True")
        self.name, self.layout = name, layout if layout is not None else Layout()
        self.partitions = Partitions(self.layout.partition_by, name)
        self._overwrite, self._append = overwrite, append
        self.run = self.whole_run = uuid.uuid4().hex[:8]
        self._job_run, self._continues = "", False
        self._operator, self._fenced = name, False
        self.parts = self.store_at(path)

    def store_at(self, path: str | Path) -> PartStore:
        """Return the store of the parts at a user's path. Raises FlowError for a path or URL that can't be written."""
        place = folder_or_store(path, self.name)
        return RemoteParts(place, self.owner) if is_remote(place) else LocalParts(Path(place), self.owner)

    @property
    def owner(self) -> Owner:
        """The start of this sink, to which its hidden parts belong."""
        return Owner(self.whole_run, self.run, self._operator, self._fenced)

    def given_settings(self) -> dict[str, Any]:
        given = self.settings_without("layout", "partitions", "parts", *_OF_RUN)
        return {**given, "path": self.parts.url, **{name: getattr(self.layout, name) for name in Layout.__slots__}}

    def continuing(self, other: Sink) -> Sink:
        assert isinstance(other, FileSink)
        sink = copy(self)
        for name in _OF_RUN:
            setattr(sink, name, getattr(other, name))
        sink.parts = other.parts
        return sink

    @abstractmethod
    def encoder(self, file: BinaryIO, schema: pa.Schema) -> Encoder:
        """Create an encoder of rows of `schema` into `file`."""

    def check_type(self, kind: pa.DataType) -> str | None:
        """Return why the format can't hold a column of this type, or None if it can."""
        return None

    def problem(self, columns: Columns) -> str | None:
        return self.partitions.problem(columns)

    def check_layout(self, present: Sequence[str]) -> None:
        """Raise ConnectorError if files would be mixed with those of another layout, because readers could not read the result."""
        columns = self.layout.partition_by
        for name in present:
            if columns and not name.startswith((f"{columns[0]}=", "_")):
                problem = f"holds `{name}`, and partition_by needs folders `{columns[0]}=...`"
            elif not columns and "=" in name and not name.startswith("part-"):
                problem = f"holds the partition folder `{name}`; say partition_by= as the files were written"
            else:
                continue
            raise ConnectorError(f"operator `{self.name}`: {self.parts.url} {problem}, or choose another folder")

    def of_job(self, job: str, operator: str, checkpoints: str | None) -> None:
        self._operator, self._fenced = operator, checkpoints is not None

    def of_run(self, run: str, *, continues: bool) -> None:
        self._job_run, self._continues = run[:8], continues

    def start(self) -> None:
        self.run = uuid.uuid4().hex[:8]
        self.whole_run = self._job_run or self.run
        self.parts.owner = self.owner
        try:
            self.parts.begin()
            present = [] if self._continues else self.parts.top()
            if self._continues:
                return
            if self._overwrite:
                self._empty(present)
                return
        except OSError as error:
            raise ConnectorError(f"operator `{self.name}`: {self.parts.url} can't be used as a folder: {error}") from error
        if self._append:
            self.check_layout(present)
        elif present:
            raise ConnectorError(f"operator `{self.name}`: {self.parts.url} is not empty; choose another folder, or say {self.remedies}")

    def writer(self, index: int, parallelism: int) -> FileWriter:
        return FileWriter(self, index)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        with self._explained(f"checkpoint {checkpoint} can't be committed in {self.parts.url}"):
            self.parts.reveal(committables)
        return []

    @property
    def retractable(self) -> bool:
        return True

    def retract(self, after: int) -> list[Any]:
        """Remove the files of later checkpoints. Their readers can't be notified."""
        with self._explained(f"files of checkpoints after {after} can't be removed from {self.parts.url}"):
            later = self.later_than(after)
            self.parts.remove(later)
            left = self.later_than(after) if later else []
        if left:
            raise ConnectorError(f"operator `{self.name}`: {left[0]} can't be removed from {self.parts.url}; check the right to delete")
        return []

    def sweep(self) -> None:
        self.parts.sweep()

    def take_over(self, job: str, needed: Needed) -> None:
        self.parts.take_over(job, needed)

    def later_than(self, checkpoint: int) -> list[str]:
        """List the paths of the files that this run has committed with later checkpoints."""
        return [path for path in self.parts.files() if (found := self._checkpoint_of(path)) is not None and found > checkpoint]

    def stop(self) -> None:
        """Remove files that killed workers of this run never prepared."""
        self.parts.release()

    def _checkpoint_of(self, path: str) -> int | None:
        """Return the checkpoint of a file of this run, None for any other file."""
        words = posixpath.basename(path).split("-")
        ours = len(words) > 3 and words[0] == "part" and words[1].isdecimal() and words[2] == self.whole_run
        return int(words[1]) if ours and path.endswith(self.extension) else None

    def _empty(self, present: Sequence[str]) -> None:
        """Remove all part files, also hidden ones. Raises ConnectorError if there is anything else."""
        files = self.parts.files()
        foreign = [path for path in files if not _is_part(path)]
        filled = {path.partition("/")[0] for path in files}
        foreign += [name for name in present if name not in filled and "=" not in name]
        if foreign:
            raise ConnectorError(
                f"operator `{self.name}`: overwrite=True deletes part files only, but {self.parts.url} holds `{foreign[0]}`; "
                "remove it yourself or choose another folder"
            )
        self.parts.remove(files)
        left = sorted(set(files).intersection(self.parts.files())) if files else []
        if left:
            raise ConnectorError(f"operator `{self.name}`: {left[0]} can't be removed from {self.parts.url}; check the right to delete")

    @contextlib.contextmanager
    def _explained(self, problem: str) -> Iterator[None]:
        """Add the operator and the path to a store's error. Errors of a local folder have their path."""
        try:
            yield
        except OSError as error:
            raise ConnectorError(f"operator `{self.name}`: {problem}: {error}") from error


class FileWriter(SinkWriter):
    """One worker's part files: at most one is open for each partition; closed ones wait for the next checkpoint."""

    def __init__(self, sink: FileSink, index: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink, self._index, self._clock = sink, index, clock
        self._writer = uuid.uuid4().hex[:12]
        self._count = 0
        self._schema: pa.Schema | None = None
        self._open: dict[str, _Part] = {}
        self._closed: list[_Part] = []

    def write(self, batch: Batch) -> None:
        if batch.num_rows == 0:
            return
        schema = self._settle(batch.rows.schema)
        rows = fitted(batch.rows, schema, self._sink.name)
        self._check_dates(rows)
        with self._explained():
            now = self._clock()
            for folder, some in self._sink.partitions.split(rows):
                self._append(folder, some, now)
            after = self._sink.layout.roll_after
            for part in [part for part in self._open.values() if after is not None and now - part.begun >= after]:
                self._close_part(part)

    def prepare(self, checkpoint: int) -> list[Any]:
        with self._explained():
            for part in [*self._open.values()]:
                self._close_part(part)
            prepared = self._sink.parts.seal([part.id for part in self._closed])
        described = [self._described(part, name, checkpoint) for part, name in zip(self._closed, prepared, strict=True)]
        self._closed = []
        return described

    def close(self) -> None:
        for part in self._open.values():
            part.abandon()
        self._sink.parts.discard([part.id for part in [*self._closed, *self._open.values()]])
        self._open, self._closed = {}, []

    def _settle(self, schema: pa.Schema) -> pa.Schema:
        """Return the writer's schema after a batch of `schema`. Raises ConnectorError if the batch changes a type."""
        if self._schema is None or not self._schema.equals(schema):
            plain = pa.schema([(field.name, field.type) for field in schema])
            self._schema = plain if self._schema is None else settled(self._schema, plain, self._sink.name, widen=self._sink.widens)
            self._sink.partitions.check(self._schema)
            for field in self._sink.partitions.in_files(self._schema):
                problem = self._sink.check_type(field.type)
                if problem is not None:
                    raise ConnectorError(f"operator `{self._sink.name}`: column `{field.name}` is {field.type}: {problem}")
        return self._schema

    def _check_dates(self, rows: pa.RecordBatch) -> None:
        """Raise ConnectorError if a date64 isn't a whole day, because files have dates without a time of day."""
        for field, column in zip(rows.schema, rows.columns, strict=True):
            if "date64" in str(field.type):
                try:
                    column.validate(full=True)
                except pa.ArrowInvalid as error:
                    raise ConnectorError(
                        f"operator `{self._sink.name}`: column `{field.name}` would lose its times of the day ({error}); round it, or "
                        'cast it to "timestamp[ms]"'
                    ) from error

    def _append(self, folder: str, rows: pa.RecordBatch, now: float) -> None:
        part = self._open.pop(folder, None)
        if part is not None and not part.schema.equals(rows.schema):
            self._close_part(part)
            part = None
        if part is None:
            while len(self._open) >= MOST_OPEN:
                self._close_part(next(iter(self._open.values())))
            part = self._begin_part(folder, rows.schema, now)
        self._open[folder] = part  # last, because it is the last to get rows
        part.encoder.write(rows)
        most = self._sink.layout.roll_bytes
        if most is not None and part.size >= most:
            self._close_part(part)

    def _begin_part(self, folder: str, schema: pa.Schema, now: float) -> _Part:
        if len(self._open) + len(self._closed) >= MOST_PARTS:
            raise ConnectorError(
                f"operator `{self._sink.name}`: a worker has written {MOST_PARTS:,} files since the last checkpoint, the last one in "
                f"`{folder}`: choose columns with fewer values for partition_by, a larger roll_bytes, or a shorter interval of checkpoints"
            )
        self._count += 1
        return _Part(self._sink, PartId(self._sink.run, self._writer, self._count - 1), folder, schema, now)

    def _close_part(self, part: _Part) -> None:
        self._open[part.folder] = part  # so that `close` removes it if it can't be finished
        part.finish()
        del self._open[part.folder]
        self._closed.append(part)

    def _described(self, part: _Part, prepared: str, checkpoint: int) -> dict[str, Any]:
        sink = self._sink
        name = f"part-{checkpoint:08d}-{sink.whole_run}-{self._index:05d}-{self._writer}-{part.id.number}{sink.extension}"
        return {"prepared": prepared, "final": posixpath.join(part.folder, name), "size": part.size}

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise ConnectorError(f"operator `{self._sink.name}`: can't write into {self._sink.parts.url}: {error}") from error


class _Part:
    """A part and its encoder. `begun`: the time at which it was created."""

    def __init__(self, sink: FileSink, part: PartId, folder: str, schema: pa.Schema, begun: float) -> None:
        self.id, self.folder, self.schema, self.begun = part, folder, schema, begun
        self._store = sink.parts
        self._file: BinaryIO | None = self._store.create(part)
        self._size = 0
        try:
            self.encoder = sink.encoder(self._file, schema)
        except BaseException:
            self._store.drop(self._file)
            self._store.discard([part])
            raise

    @property
    def size(self) -> int:
        """The bytes in the file, and those of rows that wait, as they are in memory."""
        return self._size if self._file is None else self._file.tell() + self.encoder.waiting

    def finish(self) -> None:
        if self._file is not None:
            self.encoder.finish()
            self._size, self._file = self._store.finish(self._file), None

    def abandon(self) -> None:
        """Close the file in any state. Otherwise Arrow's writers would try to finish it when they are garbage-collected."""
        if self._file is not None:
            with contextlib.suppress(OSError, pa.ArrowException):
                self.encoder.finish()
            self._store.drop(self._file)


def _is_part(path: str) -> bool:
    """Return True for a path that a file sink may have written: a part in any partition's folder, or a hidden part."""
    *folders, name = path.split("/")
    if folders[:1] == [STAGING]:
        return True
    return all("=" in folder for folder in folders) and name.startswith(("part-", ".part-"))
