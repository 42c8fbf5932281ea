"""The base of the sinks that write files: a part has a hidden name while it is written, and a visible one when its checkpoint
completes.

A part is `.part-START-WRITER-N.inprogress` while it is written, `....prepared` once it is durable and some checkpoint may hold
it, and `part-CHECKPOINT-RUN-WORKER-WRITER-N.EXTENSION` once that checkpoint is complete. RUN is the same in all starts of a
program that continue a run, START names one of them. Readers skip hidden names, so they never see a row that a recovery from the
newest checkpoint could retract. `.part-START.owner` names the start's job (`claim.py`).
"""

from __future__ import annotations

import contextlib
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.errors import ConnectorError, FlowError
from ...engine.sink import Sink, SinkWriter
from ...state.durable import make_folder, sync_folder
from .claim import Claim, dead_runs, owner_file
from .one_schema import fitted, settled
from .remote import local_folder


class Encoder(ABC):
    """An encoder of rows of one schema into one open file."""

    @abstractmethod
    def write(self, rows: pa.RecordBatch) -> None:
        """Append `rows`."""

    @abstractmethod
    def finish(self) -> None:
        """Write buffered rows and the footer; the caller closes the file."""


class FileSink(Sink):
    """A sink into a folder of part files, one per worker and checkpoint with rows. A subclass supplies the format."""

    remedies = "overwrite=True or append=True"
    """The options for a folder that is not empty, for error messages."""

    guarantee = "exactly once (a file appears when the checkpoint that holds it completes)"
    extension: str
    widens = False
    """True if a column may be of a wider type in later files, because the files have no types."""

    def __init__(self, path: str | Path, overwrite: bool, append: bool, name: str) -> None:
        if overwrite and append:
            raise FlowError(f"operator `{name}`: choose one of overwrite=True and append=True")
        self.name, self.folder = name, local_folder(path, name)
        self._overwrite, self._append = overwrite, append
        self.run = self.whole_run = uuid.uuid4().hex[:8]
        self._job_run, self._continues = "", False
        self._claim: Claim | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_claim": None}

    @abstractmethod
    def encoder(self, file: BinaryIO, schema: pa.Schema) -> Encoder:
        """Create an encoder of rows of `schema` into `file`."""

    def check_type(self, kind: pa.DataType) -> str | None:
        """Return why the format can't hold a column of this type, or None if it can."""
        return None

    def of_run(self, run: str, *, continues: bool) -> None:
        self._job_run, self._continues = run[:8], continues

    def start(self) -> None:
        self.run = uuid.uuid4().hex[:8]
        self.whole_run = self._job_run or self.run
        try:
            make_folder(self.folder)
            present = sorted(self.folder.iterdir())
        except OSError as error:
            raise ConnectorError(f"operator `{self.name}`: {self.folder} can't be used as a folder: {error}") from error
        if self._continues:
            return
        if self._overwrite:
            self._empty(present)
        elif not self._append and any(not path.name.startswith(".") for path in present):
            raise ConnectorError(f"operator `{self.name}`: {self.folder} is not empty; choose another folder, or say {self.remedies}")

    def writer(self, index: int, parallelism: int) -> FileWriter:
        return FileWriter(self, index)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        for part in committables:
            self._reveal(part["prepared"], part["final"], part.get("size"))
        if committables:
            sync_folder(self.folder)
        return []

    @property
    def retractable(self) -> bool:
        return True

    def retract(self, after: int) -> list[Any]:
        """Remove the files of later checkpoints. Their readers can't be notified."""
        later = self.later_than(after)
        for path in later:
            path.unlink(missing_ok=True)
        if later:
            sync_folder(self.folder)
        return []

    def sweep(self) -> None:
        for path in self.folder.glob(f".part-{self.run}-*.prepared"):
            path.unlink(missing_ok=True)

    def take_over(self, job: str, needed: Callable[[], Sequence[Any] | None]) -> None:
        """Remove hidden files of dead runs, except prepared ones. `needed` returns prepared files that an existing checkpoint
        refers to.
        """
        self._claim = self._claim or Claim(self.folder, self.run, job)
        for run in dead_runs(self.folder, job):
            committables = needed()
            names = None if committables is None else {part["prepared"] for part in committables if "prepared" in part}
            self._sweep_run(run, names)

    def _sweep_run(self, run: str, keep: Collection[str] | None) -> None:
        """Remove the hidden files of a finished run, except the prepared ones in `keep` (None keeps all of them)."""
        for path in self.folder.glob(f".part-{run}-*.inprogress"):
            path.unlink(missing_ok=True)
        left = False
        for path in self.folder.glob(f".part-{run}-*.prepared"):
            if keep is None or path.name in keep:
                left = True
            else:
                path.unlink(missing_ok=True)
        if not left:
            owner_file(self.folder, run).unlink(missing_ok=True)

    def later_than(self, checkpoint: int) -> list[Path]:
        """List the files that this run has committed with later checkpoints."""
        parts = [path for path in self.folder.glob(f"part-*-{self.whole_run}-*{self.extension}") if path.name.split("-")[1].isdecimal()]
        return sorted(path for path in parts if int(path.name.split("-")[1]) > checkpoint)

    def stop(self) -> None:
        """Remove files that killed workers of this run never prepared."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        with contextlib.suppress(OSError):
            self._sweep_run(self.run, keep=None)

    def _reveal(self, prepared: str, final: str, size: int | None) -> None:
        """Rename a prepared file. Raises ConnectorError if it is missing or truncated. Older checkpoints don't have the size."""
        there = self.folder / prepared if (self.folder / prepared).exists() else self.folder / final
        try:
            found = there.stat().st_size
        except FileNotFoundError as error:
            raise ConnectorError(
                f"operator `{self.name}`: {prepared} is missing from {self.folder}, so its rows can't be committed; "
                "don't remove hidden files of a job that may be resumed"
            ) from error
        if size is not None and found != size:
            raise ConnectorError(
                f"operator `{self.name}`: {there} has {found:,} bytes, and {size:,} were written: its rows are lost unless you "
                "restore the file"
            )
        if there.name == prepared:
            there.replace(self.folder / final)

    def _empty(self, present: Sequence[Path]) -> None:
        foreign = [path.name for path in present if path.is_dir() or not path.name.startswith(("part-", ".part-"))]
        if foreign:
            raise ConnectorError(
                f"operator `{self.name}`: overwrite=True deletes part files only, but {self.folder} holds `{foreign[0]}`; "
                "remove it yourself or choose another folder"
            )
        for path in present:
            path.unlink()


class FileWriter(SinkWriter):
    """One worker's part files: at most one is open; closed ones wait for the next checkpoint."""

    def __init__(self, sink: FileSink, index: int) -> None:
        self._sink, self._index = sink, index
        self._writer = uuid.uuid4().hex[:12]
        self._parts = 0
        self._schema: pa.Schema | None = None
        self._open: _Part | None = None
        self._closed: list[str] = []

    def write(self, batch: Batch) -> None:
        if batch.num_rows == 0:
            return
        schema = self._settle(batch.rows.schema)
        with self._explained():
            if self._open is not None and not self._open.schema.equals(schema):
                self._close_part()
            if self._open is None:
                self._open = _Part(self._sink, self._name(), schema)
            self._open.encoder.write(fitted(batch.rows, schema, self._sink.name))

    def prepare(self, checkpoint: int) -> list[Any]:
        with self._explained():
            self._close_part()
            parts = [self._prepared(name, checkpoint) for name in self._closed]
            if parts:
                sync_folder(self._sink.folder)
        self._closed = []
        return parts

    def close(self) -> None:
        if self._open is not None:
            self._open.abandon()
        for name in [*self._closed, *([self._open.name] if self._open else [])]:
            with contextlib.suppress(OSError):
                (self._sink.folder / name).unlink(missing_ok=True)
        self._open, self._closed = None, []

    def _settle(self, schema: pa.Schema) -> pa.Schema:
        """Return the writer's schema after a batch of `schema`. Raises ConnectorError if the batch changes a type."""
        if self._schema is None or not self._schema.equals(schema):
            plain = pa.schema([(field.name, field.type) for field in schema])
            self._schema = plain if self._schema is None else settled(self._schema, plain, self._sink.name, widen=self._sink.widens)
            for field in self._schema:
                problem = self._sink.check_type(field.type)
                if problem is not None:
                    raise ConnectorError(f"operator `{self._sink.name}`: column `{field.name}` is {field.type}: {problem}")
        return self._schema

    def _close_part(self) -> None:
        if self._open is not None:
            self._open.finish()
            self._closed.append(self._open.name)
            self._open = None

    def _prepared(self, name: str, checkpoint: int) -> dict[str, Any]:
        stem = name.removesuffix(".inprogress")
        number = stem.rpartition("-")[2]
        prepared = (self._sink.folder / name).rename(self._sink.folder / f"{stem}.prepared")
        final = f"part-{checkpoint:08d}-{self._sink.whole_run}-{self._index:05d}-{self._writer}-{number}{self._sink.extension}"
        return {"prepared": prepared.name, "final": final, "size": prepared.stat().st_size}

    def _name(self) -> str:
        self._parts += 1
        return f".part-{self._sink.run}-{self._writer}-{self._parts - 1}.inprogress"

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise ConnectorError(f"operator `{self._sink.name}`: can't write into {self._sink.folder}: {error}") from error


class _Part:
    """An open file and its encoder."""

    def __init__(self, sink: FileSink, name: str, schema: pa.Schema) -> None:
        self.name, self.schema = name, schema
        self._file = (sink.folder / name).open("xb")
        try:
            self.encoder = sink.encoder(self._file, schema)
        except BaseException:
            self._file.close()
            (sink.folder / name).unlink()
            raise

    def finish(self) -> None:
        self.encoder.finish()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Close the file in any state. Otherwise Arrow's writers would try to finish it when they are garbage-collected."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self.encoder.finish()
        with contextlib.suppress(OSError):
            self._file.close()
