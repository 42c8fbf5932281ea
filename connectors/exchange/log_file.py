"""A file of the log that Spark's streaming file sink keeps: the line `v1`, then one JSON object per Parquet file.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp(), "0")
>>> write_log(path, [LogFile("/data/a b.parquet", 123, 1700000000000)])
>>> print(path.read_text()[:40])
v1
{"path":"file:///data/a%20b.parquet",
>>> read_log(path)
[('add', LogFile(path='/data/a b.parquet', size=123, modified=1700000000000))]
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from ...engine.errors import ConnectorError
from ...state.durable import write_durably

COMPACT_EVERY = 10
"""Spark's default of `spark.sql.streaming.fileSink.log.compactInterval`."""

_HEADER = "v1"
_BLOCK_SIZE = 32 << 20  # the value that Hadoop reports for local files


@dataclass(frozen=True, slots=True)
class LogFile:
    """A committed Parquet file: local path, bytes, and modification time in milliseconds since the epoch."""

    path: str
    size: int
    modified: int


def log_file(path: Path) -> LogFile:
    """Return the entry of an existing file. Raises ConnectorError if it doesn't exist."""
    try:
        found = path.stat()
    except OSError as error:
        raise ConnectorError(f"{path} can't be committed: {error}") from error
    return LogFile(str(path), found.st_size, found.st_mtime_ns // 1_000_000)


def read_log(path: Path) -> list[tuple[str, LogFile]] | None:
    """Read the entries of a log file with their actions ("add" or "delete"); return None if it doesn't exist.

    Raises ConnectorError naming file and line if it is damaged.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConnectorError(f"{path} can't be read as a log of Spark's file sink: {error}") from error
    if lines[0] != _HEADER:
        raise ConnectorError(f"{path} can't be read as a log of Spark's file sink: it begins with {lines[0][:40]!r}, expected {_HEADER!r}")
    return [_parse(line, f"{path}, line {number}") for number, line in enumerate(lines[1:], 2) if line]


def write_log(path: Path, files: Sequence[LogFile]) -> None:
    """Write a log file that adds `files`, durably and atomically. Raises ConnectorError if it exists already."""
    lines = "\n".join([_HEADER, *(_format(file) for file in files)])
    try:
        write_durably(path, lines.encode(), exclusive=True)  # so that two writers can't both believe that they committed
    except FileExistsError as error:
        raise ConnectorError(f"{path} was just committed by another writer; let only one job write into one exchange folder") from error
    except OSError as error:
        raise ConnectorError(f"{path} can't be committed: {error}") from error


def compact_interval(compacted: Sequence[int]) -> int:
    """Return the distance of compacted batches, given the numbers (ascending) of the existing ones.

    Spark derives it in the same way (`CompactibleFileStreamLog.compactInterval`), so that both sides can continue in each other's
    folder.

    >>> compact_interval([]), compact_interval([4]), compact_interval([9]), compact_interval([4, 9]), compact_interval([59])
    (10, 5, 10, 5, 10)
    """
    if not compacted:
        return COMPACT_EVERY
    if len(compacted) >= 2:
        return compacted[-1] - compacted[-2]
    size = compacted[0] + 1
    if size > COMPACT_EVERY and size // 2 > COMPACT_EVERY:
        return next((divisor for divisor in range(COMPACT_EVERY, size // 2 + 1) if size % divisor == 0), size)
    return size


def without_deleted(entries: Sequence[tuple[str, LogFile]]) -> list[LogFile]:
    """Return the files that `entries` add and don't delete again."""
    deleted = {file.path for action, file in entries if action == "delete"}
    return [file for action, file in entries if action == "add" and file.path not in deleted]


def _parse(line: str, where: str) -> tuple[str, LogFile]:
    try:
        entry = json.loads(line)
        action, path, size, modified = entry["action"], entry["path"], entry["size"], entry["modificationTime"]
    except (ValueError, TypeError, KeyError) as error:
        raise ConnectorError(f"{where}: not an entry of Spark's file sink ({error!r}): {line[:200]!r}") from error
    if action not in ("add", "delete") or not isinstance(path, str) or not isinstance(size, int) or not isinstance(modified, int):
        raise ConnectorError(f"{where}: not an entry of Spark's file sink: {line[:200]!r}")
    return action, LogFile(_local_path(path, where), size, modified)


def _local_path(uri: str, where: str) -> str:
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file") or parts.netloc:
        raise ConnectorError(f"{where}: {uri} is not a local file; an exchange folder must be a path that all nodes mount")
    return unquote(parts.path)


def _format(file: LogFile) -> str:
    entry: dict[str, Any] = {
        "path": "file://" + quote(file.path),
        "size": file.size,
        "isDir": False,
        "modificationTime": file.modified,
        "blockReplication": 1,
        "blockSize": _BLOCK_SIZE,
        "action": "add",
    }
    return json.dumps(entry, separators=(",", ":"))
