"""The exchange folder: Parquet files, and the log of the committed ones in the format of Spark's streaming file sink.

A log batch `N` is a file `_spark_metadata/N` that lists the Parquet files it adds. Every tenth one is `N.compact` and repeats all
files before it. Batches are numbered from 0 without gaps, and appear whole or not at all.

Invariant: Spark's batch and streaming readers, and ours, see only files that a batch names.

>>> import tempfile
>>> exchange = ExchangeFolder(tempfile.mkdtemp())
>>> exchange.create()
>>> part = exchange.folder / "part-0.parquet"
>>> _ = part.write_bytes(b"...")
>>> exchange.append([part]), exchange.append([part]), exchange.latest()
(0, 0, 0)
>>> [file.path == str(part) for file in exchange.added(0)]
[True]
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.errors import ConnectorError
from ...state.durable import make_folder, sync_folder, write_durably
from .log_file import LogFile, compact_interval, log_file, read_log, without_deleted, write_log

LOG_FOLDER = "_spark_metadata"
OWN_FOLDER = "_evenflow"
"""The folder next to the log for the end marker, and by default for Spark's checkpoint."""

_COMPACT = ".compact"


@dataclass(frozen=True, slots=True)
class EndMarker:
    """The end of the log, after batch `last` (-1: no batch). `failure`: the error, if the query failed."""

    last: int
    failure: str | None = None


class ExchangeFolder:
    """An exchange folder on a local or mounted file system. Any number of readers, one writer at a time."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self.log = self.folder / LOG_FOLDER
        self.own = self.folder / OWN_FOLDER
        self._committed: tuple[int, set[str]] = (-1, set())

    def create(self) -> None:
        """Create the folder with an empty log: from now on Spark sees committed files only. Raises ConnectorError."""
        try:
            make_folder(self.log)
            make_folder(self.own)
        except OSError as error:
            raise ConnectorError(f"{self.folder} can't be used as an exchange folder: {error}") from error

    def latest(self) -> int | None:
        """Return the number of the newest committed batch, or None without any (the folder need not exist)."""
        return max(self._numbers("") + self._numbers(_COMPACT), default=None)

    def added(self, batch: int) -> list[LogFile] | None:
        """List the files that batch `batch` committed; return None if it isn't committed.

        Raises ConnectorError naming the log file if it is damaged, or if the log before it, which it repeats, was cleaned up.
        """
        entries = read_log(self.log / str(batch))
        if entries is not None:
            return without_deleted(entries)
        entries = read_log(self.log / f"{batch}{_COMPACT}")
        if entries is None:
            return None
        before = {file.path for file in self.committed(batch - 1)}
        return [file for file in without_deleted(entries) if file.path not in before]

    def committed(self, last: int) -> list[LogFile]:
        """List the files of all batches up to and including `last`, in order. Raises ConnectorError if a batch is missing or
        damaged.
        """
        start = max((number for number in self._numbers(_COMPACT) if number <= last), default=None)
        entries: list[tuple[str, LogFile]] = []
        for number in range(start or 0, last + 1):
            path = self.log / (f"{number}{_COMPACT}" if number == start else str(number))
            found = read_log(path)
            if found is None:
                raise ConnectorError(
                    f"{path} is missing, though later batches are there: Spark removes old log files unless "
                    "spark.sql.streaming.fileSink.log.deletion is false; restore it, or start over with an empty folder"
                )
            entries += found
        return without_deleted(entries)

    def append(self, files: Sequence[Path]) -> int:
        """Commit `files` together in one new batch, and return its number; files that are committed already need no new batch.

        Raises ConnectorError if a file is missing, if only some are committed already, or if another writer is active.
        """
        latest = self.latest()
        last = -1 if latest is None else latest
        paths = [str(path) for path in files]
        repeated = self._known(last).intersection(paths)
        if repeated:
            batch = self._batch_with(next(iter(repeated)), last)
            self._expect_same(batch, paths)
            return batch
        self.publish(last + 1, files)
        return last + 1

    def publish(self, batch: int, files: Sequence[Path]) -> None:
        """Commit `files` as batch `batch`, the next one, unless that batch already contains exactly them. Raises ConnectorError."""
        entries = [log_file(path) for path in files]
        if self.added(batch) is not None:
            self._expect_same(batch, [file.path for file in entries])
            return
        if batch > 0 and self.added(batch - 1) is None:
            raise ConnectorError(f"{self.log}: batch {batch} can't be committed before batch {batch - 1}, which is missing")
        compacting = (batch + 1) % compact_interval(self._numbers(_COMPACT)) == 0
        before = self.committed(batch - 1) if compacting else []
        write_log(self.log / (f"{batch}{_COMPACT}" if compacting else str(batch)), [*before, *entries])
        known_until, known = self._committed
        if known_until == batch - 1:
            self._committed = (batch, known.union(file.path for file in entries))

    def cut_off(self, paths: set[str]) -> None:
        """Remove the newest batches that have only files from `paths`. Raises ConnectorError if one of them is damaged."""
        latest = self.latest()
        for batch in range(-1 if latest is None else latest, -1, -1):
            if not {file.path for file in self.added(batch) or ()} <= paths:
                break
            for name in (str(batch), f"{batch}{_COMPACT}"):
                (self.log / name).unlink(missing_ok=True)
        sync_folder(self.log)
        self._committed = (-1, set())

    def end(self) -> EndMarker | None:
        """Read the marker that `finish` wrote; None while more batches may follow. Raises ConnectorError naming the marker if it
        is damaged.
        """
        path = self.own / "end.json"
        try:
            found = json.loads(path.read_text("utf-8"))
            return EndMarker(int(found["last"]), found["failure"])
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise ConnectorError(f"{path} is damaged: {error!r}; remove it and start the job again") from error

    def finish(self, end: EndMarker) -> None:
        """Mark the log as complete, atomically, for its readers."""
        write_durably(self.own / "end.json", json.dumps({"last": end.last, "failure": end.failure}).encode())

    def reopen(self) -> None:
        """Remove the end marker of an earlier run."""
        (self.own / "end.json").unlink(missing_ok=True)

    def _numbers(self, suffix: str) -> list[int]:
        try:
            names = [path.name for path in self.log.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(stem) for name in names if (stem := name.removesuffix(suffix)).isdecimal() and name == stem + suffix)

    def _known(self, last: int) -> set[str]:
        if self._committed[0] != last:
            self._committed = (last, {file.path for file in self.committed(last)})
        return self._committed[1]

    def _batch_with(self, path: str, last: int) -> int:
        for batch in range(last, -1, -1):
            if path in {file.path for file in self.added(batch) or ()}:
                return batch
        raise ConnectorError(f"{self.log}: the batch that committed {path} no longer names it: a log file is damaged")

    def _expect_same(self, batch: int, paths: Sequence[str]) -> None:
        if {file.path for file in self.added(batch) or ()} != set(paths):
            raise ConnectorError(f"{self.log}: batch {batch} was committed with other files; does another job write into the same folder?")
