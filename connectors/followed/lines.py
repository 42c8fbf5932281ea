"""Reads files to which lines are appended, each to its end, and continues when it has grown.

A reader has the files whose inodes are assigned to it, so a renamed file stays with its reader. Its position has all its existing
files and how far each was read; a reassignment moves files. A look at the folder notes the sizes. The lines before these sizes
are then read, file by file; lines appended meanwhile wait for the next look, so that no file starves another.

Event time: an appended line may be `max_delay` behind the newest time that is then in any file. So the newest time known before a
look bounds all lines appended after it. Each look also reads the end of another reader's file, the one that changed last.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MIN_TIME
from ...engine.time.event_time import EventTime
from ..quiet import CLOCKS, Clocks
from .arrived import ArrivedFile
from .follow import Follow, shared
from .following_reader import FollowingReader
from .growing import Growing, LineBlock, MovedError, ReplacedError

TAIL = 65_536
"""The bytes at the end of another reader's file that are searched for the newest event time."""


class FilesOfLines(Protocol):
    """The part of a source that its reader of lines needs."""

    name: str
    has_header: bool

    def arrivals(self) -> Iterator[tuple[str, ArrivedFile | None]]:
        """Yield the paths of all existing files; the state of local ones is None."""

    def decode(self, path: str, block: LineBlock) -> pa.RecordBatch:
        """Decode a block of lines. Raises ConnectorError for lines that don't fit the stream's columns."""


class LinesReader(FollowingReader):
    """A reader of one worker's files."""

    def __init__(
        self,
        files: FilesOfLines,
        follow: Follow,
        *,
        index: int,
        parallelism: int,
        event_time: EventTime | None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        super().__init__(index, parallelism, event_time, clocks)
        self._files, self._follow = files, follow
        self._known: dict[int, Growing] = {}
        self._unread: deque[Growing] = deque()
        self._moved: list[Growing] = []
        """Files with unread lines that were renamed since the last look: they hold event time back until the next one finds them.
        """
        self._batch: Batch | None = None
        self._batch_end = 0
        self._settled = MIN_TIME
        self._peeked: tuple[int, str] | None = None

    def poll(self, max_rows: int) -> Batch | None:
        while self._batch is None:
            if not self._unread and self._clock() >= self._next_look:
                look = self._quiet.look()
                self._look()
                if not self._unread and not self._moved:
                    self._quiet.found_nothing(look)
            if not self._unread:
                return None
            if not self._load(self._unread[0]):
                self._unread.popleft()
        self._quiet.gave()
        file, batch = self._unread[0], self._batch.slice(0, max_rows)
        file.rows += batch.num_rows
        rest = self._batch.num_rows - batch.num_rows
        self._batch = self._batch.slice(batch.num_rows, rest) if rest else None
        if not rest:
            file.offset, file.rows = self._batch_end, 0
        if batch.times is not None:
            newest = int(batch.times.max())
            file.newest = newest if file.newest is None else max(file.newest, newest)
            self._newest = max(self._newest, newest)
        return batch

    def seek(self, position: Any) -> None:
        super().seek(position)
        files = [Growing(*file) for file in position["files"]]
        self._known = {file.inode: file for file in files}

    def _bound(self, event_time: EventTime) -> int:
        newest = [MIN_TIME if file.newest is None else file.newest for file in (*self._unread, *self._moved)]
        return min([self._settled, *newest]) - event_time.max_delay

    def _position_of_files(self) -> dict[str, Any]:
        return {"files": [list(astuple(file)) for file in self._known.values()]}

    def _load(self, file: Growing) -> bool:
        """Decode the file's next block; return False if it has none before the size of the last look."""
        while True:
            try:
                block = file.next_block(header=self._files.has_header)
            except MovedError:
                self._moved.append(file)
                return False
            except ReplacedError as error:
                raise self._lost(file, "was truncated or replaced") from error
            except OSError as error:
                raise self._unreadable(file, error) from error
            if block is None:
                if file.rows:
                    raise self._lost(file, "was cut short")
                file.unread = False
                return False
            rows = self._files.decode(file.path, block)
            if rows.num_rows < file.rows:
                raise self._lost(file, "has changed")
            rows = rows.slice(file.rows)
            if rows.num_rows:
                times = None if self._event_time is None else self._event_time.extract(rows, self._files.name)
                self._batch, self._batch_end = Batch(rows, times), block.end
                return True
            file.offset, file.rows = block.end, 0

    def _look(self) -> None:
        """Note the existing files, and how far each can be read."""
        began, known_before = self._clock(), self._newest
        found, newest_of_others = dict[int, tuple[str, os.stat_result]](), None
        for path, _ in self._files.arrivals():
            with suppress(FileNotFoundError):  # removed after it was listed
                status = Path(path).stat()
                if _reader_of(status.st_ino, self._parallelism) == self._index:
                    found[status.st_ino] = (path, status)
                else:
                    newest_of_others = max(newest_of_others or (0, ""), (status.st_mtime_ns, path))
        for file in [file for file in self._known.values() if file.inode not in found]:
            renamed = _renamed(file)
            if renamed is not None:
                found[file.inode] = renamed
            elif file.unread:
                raise self._lost(file, "was removed")
            else:
                del self._known[file.inode]
        self._moved = []
        for inode, (path, status) in found.items():
            self._note(self._known.setdefault(inode, Growing(inode, path)), path, status)
        unread = [file for file in self._known.values() if file.unread]
        self._unread.extend(sorted(unread, key=lambda file: (file.changed, file.path)))
        self._settled = max(self._settled, known_before)
        self._peek_at(newest_of_others)
        self._next_look = self._follow.next_look(began, self._clock())

    def _note(self, file: Growing, path: str, status: os.stat_result) -> None:
        file.path = path
        if (status.st_size, status.st_mtime_ns) == (file.size, file.changed):
            return
        try:
            file.check()
        except MovedError:
            self._moved.append(file)  # after it was listed
            return
        except ReplacedError as error:
            if file.unread:
                raise self._lost(file, "was truncated or replaced") from error
            file.restart()
        except OSError as error:
            raise self._unreadable(file, error) from error
        file.size, file.changed, file.unread = status.st_size, status.st_mtime_ns, True

    def _peek_at(self, other: tuple[int, str] | None) -> None:
        """Note the newest event time at the end of another reader's file."""
        if self._event_time is None or other is None or other == self._peeked:
            return
        self._peeked = other
        with suppress(ConnectorError, MovedError, OSError):  # the reader whose file it is reports the error
            status = Path(other[1]).stat()
            file = Growing(status.st_ino, other[1], size=status.st_size, offset=max(0, status.st_size - TAIL))
            block = file.next_block(header=self._files.has_header)
            if block is None:
                return
            # The block may begin within a line.
            lines = block.lines.partition(b"\n")[2] if file.offset > len(block.header) else block.lines
            if lines:
                rows = self._files.decode(file.path, LineBlock(block.header, lines, block.end))
                self._newest = max([self._newest, *self._event_time.extract(rows, self._files.name).tolist()])

    def _unreadable(self, file: Growing, error: OSError) -> ConnectorError:
        return ConnectorError(f"operator `{self._files.name}`: {file.path} can't be read: {error}")

    def _lost(self, file: Growing, what: str) -> ConnectorError:
        return ConnectorError(
            f"operator `{self._files.name}`: {file.path} {what} before it was read from byte {file.offset}, row {file.rows} after that, to "
            "its end; put the lines back, or start without the checkpoint"
        )


def share_out_lines(positions: Sequence[Any], parallelism: int, operator: str) -> list[Any]:
    """Return positions of `parallelism` readers that together continue where the readers at `positions` were."""
    files = [file for position in positions for file in position["files"]]
    return [
        {**common, "files": [file for file in files if _reader_of(file[0], parallelism) == index]}
        for index, common in enumerate(shared(positions, parallelism, operator))
    ]


def _reader_of(inode: int, parallelism: int) -> int:
    return inode % parallelism


def _renamed(file: Growing) -> tuple[str, os.stat_result] | None:
    """Find the file in its folder under a name that wasn't listed."""
    with suppress(FileNotFoundError), os.scandir(Path(file.path).parent) as entries:
        for entry in entries:
            if entry.inode() == file.inode:
                return entry.path, entry.stat()
    return None
