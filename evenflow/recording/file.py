"""The file of a recording: a header, then a frame for each view, appended while the job runs.

A frame has its length, a checksum, the view's time, a flag for whole views, and the view. The first of every minute is whole, so that a
reader can begin there. A file that is cut in the middle of a frame, or damaged, is read up to that frame.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgpack

from ..engine.errors import ConnectorError
from ..scheduler.job.view_cursor import ViewCursor
from ..scheduler.protocol.view import JobView
from .codec import packed, unpacked
from .packing import ViewPacker, ViewReader

MAGIC = b"evenflow recording "
VERSION = 1
BEGINNING = MAGIC + b"%d\n" % VERSION

FRAME = struct.Struct("<IIdB")
"""Length of the body, checksum of the rest, seconds since the epoch, and 1 for a whole view; little-endian."""

CHECKED_FROM = 8
"""The offset in a frame at which the checksum begins."""

WHOLE_EVERY = 60
"""The number of views for each whole one."""


class RecordingWriter:
    """A new file to which views are appended; it is complete up to the newest view, whenever the process ends.

    Raises ConnectorError if the file exists or can't be written.
    """

    def __init__(self, path: Path, job: str, began: float) -> None:
        self._path, self._packer = path, ViewPacker()
        self._cursor, self._views = ViewCursor(), 0
        try:
            self._file = path.open("xb", buffering=0)
        except FileExistsError as error:
            raise ConnectorError(f"{path} exists already: name another file for the recording") from error
        except OSError as error:
            raise ConnectorError(f"the recording can't be written to {path}: {error}") from error
        header = {"job": job, "began": began, "version": _version(), "fields": {name: list(of) for name, of in self._packer.fields.items()}}
        self._write(BEGINNING + _frame(began, packed(header), whole=True))

    def add(self, view: JobView) -> None:
        """Append a view, without the windows of earlier ones."""
        whole = self._views % WHOLE_EVERY == 0
        new = replace(view, windows=self._cursor.advance(view).windows)
        self._write(_frame(view.now, self._packer.pack(new, whole=whole), whole=whole))
        self._views += 1

    def _write(self, data: bytes) -> None:
        try:
            written = self._file.write(data)
        except OSError as error:
            raise ConnectorError(f"the recording can't be written to {self._path}: {error}") from error
        if written != len(data):
            raise ConnectorError(f"the recording can't be written to {self._path}: the disk is full")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()


def _version() -> str:
    try:
        return version("evenflow")
    except PackageNotFoundError:
        return "unknown"


def _frame(time: float, body: bytes, *, whole: bool) -> bytes:
    head = FRAME.pack(len(body), 0, time, whole)
    checksum = zlib.crc32(head[CHECKED_FROM:] + body)
    return FRAME.pack(len(body), checksum, time, whole) + body


def is_recording(path: Path) -> bool:
    """True if a file begins like a recording of any version."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a frame's body."""

    time: float
    whole: bool
    begin: int
    end: int


class Recording:
    """A recording to read. `began`, `ended`: the times of the first view and the last, in seconds since the epoch. `job`: the job's name.

    `problem`: why only a part of the file was read, None if it was read to its end. Raises ConnectorError for a file that can't be read,
    is no recording, is of another version, or has no view.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.problem = path, None
        try:
            self._data = path.read_bytes()
        except OSError as error:
            raise ConnectorError(f"the recording {path} can't be read: {error}") from error
        self._check_beginning()
        first, *self._places = self._frames()
        try:
            header = unpacked(self._body(first))
            self.job = str(header["job"])
            self._fields = {str(name): tuple(map(str, of)) for name, of in header["fields"].items()}
        except (ValueError, TypeError, LookupError, AttributeError, msgpack.UnpackException) as error:
            raise ConnectorError(f"{path} is no recording: its header can't be read") from error
        self.times = [place.time for place in self._places]
        self.began, self.ended = self.times[0], self.times[-1]

    problem: str | None

    def index_at(self, time: float) -> int:
        """Return the number of the newest view at that time, or of the first view."""
        return max(0, bisect_right(self.times, time) - 1)

    def views(self, first: int = 0, last: int | None = None) -> Iterator[JobView]:
        """Yield the views from number `first` to `last`, both included. Raises SnapshotError for one that can't be read."""
        begin = max(number for number in range(first + 1) if self._places[number].whole)
        reader = ViewReader(self._fields)
        for number in range(begin, len(self._places) if last is None else last + 1):
            view = reader.read(self._body(self._places[number]))
            if number >= first:
                yield view

    def _check_beginning(self) -> None:
        if not self._data.startswith(MAGIC):
            raise ConnectorError(f"{self.path} is no recording: `evenflow record JOB FILE` makes one")
        if not self._data.startswith(BEGINNING):
            other = self._data[len(MAGIC) :].partition(b"\n")[0][:20].decode(errors="replace")
            problem = f"is a recording of version {other}, and this evenflow reads version {VERSION}: use the evenflow that wrote it"
            raise ConnectorError(f"{self.path} {problem}")

    def _frames(self) -> list[_Place]:
        """Find the frames up to the first damaged one. Raises ConnectorError unless there is a header and a whole view."""
        places, at = list[_Place](), len(BEGINNING)
        while at < len(self._data):
            place = self._place(at)
            if place is None:
                break
            places.append(place)
            at = place.end
        if len(places) < 2 or not places[1].whole:
            raise ConnectorError(f"{self.path} has no view: the recording ended before its first view, or is damaged")
        return places

    def _place(self, at: int) -> _Place | None:
        """Find the frame that begins at an offset, None if it isn't complete."""
        begin = at + FRAME.size
        length, checksum, time, whole = FRAME.unpack_from(self._data, at) if begin <= len(self._data) else (0, 0, 0.0, 0)
        end = begin + length
        if begin > len(self._data) or end > len(self._data):
            self.problem = f"the last {len(self._data) - at} bytes belong to a view that was not written to its end"
            return None
        if zlib.crc32(memoryview(self._data)[at + CHECKED_FROM : end]) != checksum:
            self.problem = f"{self.path} is damaged from byte {at} of {len(self._data)} on"
            return None
        return _Place(time, bool(whole), begin, end)

    def _body(self, place: _Place) -> Any:
        return self._data[place.begin : place.end]
