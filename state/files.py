"""State files: chunks of keyed state in a file that is written once; each chunk is checked before it is used.

A file is a magic line, then each chunk: a header with its length and its XXH3 checksum, and an Arrow IPC stream of one batch. All parts
are multiples of 8 bytes long, so that the arrays of a chunk can be used where they were read. The file's entry holds its size and the
checksum of all headers, so a truncated file or a flipped bit is always noticed.

>>> import io
>>> import pyarrow as pa
>>> file = io.BytesIO()
>>> writer = StateFileWriter(file, "count-0.state")
>>> writer.write(pa.record_batch({"key": [1, 2]}))
>>> entry = writer.finish()
>>> [chunk.to_pydict() for chunk in read_chunks(io.BytesIO(file.getvalue()), entry)]
[{'key': [1, 2]}]
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import xxhash

from .errors import CorruptStateError

CHUNK_ROWS, CHUNK_BYTES = 1 << 18, 1 << 25
"""The rows and the bytes from which on a chunk is large: smaller ones are put together before they are written, and after they are read,
because each costs as much as some thousand rows. A column of texts must stay below the 2 GB that Arrow's offsets reach.
"""

FIRST_MAGIC = b"evenflow state 1\n"
"""Files of the first format are read: a length (4 bytes, little endian) before each chunk, and one checksum of the whole file."""

MAGIC = b"evenflow state 2\n".ljust(24, b"\0")
_HEADER = struct.Struct("<Q16s")
"""The length of a chunk in bytes, and its checksum."""


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file's entry: `path` relative to the folder of the manifest that lists it, `size` in bytes, `keys` in it."""

    path: str
    size: int
    checksum: str
    keys: int


class Writable(Protocol):
    """A file that a state file is written to."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Append bytes. Raises OSError if they can't be written."""


class Readable(Protocol):
    """A file that a state file is read from."""

    def seek(self, offset: int, whence: int, /) -> int:
        """Go to a place, and return it."""

    def read(self, size: int, /) -> bytes | memoryview:
        """Return the next bytes, fewer than `size` only at the end. Raises OSError."""


class StateFileWriter:
    """A writer that appends chunks to an open file, which the caller closes."""

    def __init__(self, file: Writable, path: str) -> None:
        self._file, self._path = file, path
        self._headers = xxhash.xxh3_128()
        self._size = self._keys = 0
        self._memory = np.zeros(0, np.uint8)
        """The place where chunks are encoded, one after the other: memory that is touched for the first time is slow."""
        self._put(MAGIC)

    def write(self, chunk: pa.RecordBatch) -> None:
        """Append a chunk. Raises OSError if it can't be written."""
        self.append(self._encoded(chunk))
        self._keys += chunk.num_rows

    def append(self, data: memoryview) -> None:
        """Append the bytes of a chunk and, before them, their header. Raises OSError if they can't be written."""
        header = _header(data)
        self._headers.update(header)
        self._put(header)
        self._put(data)

    def finish(self) -> StateFile:
        """Return the entry of the written file."""
        return StateFile(self._path, self._size, self._headers.hexdigest(), self._keys)

    def _encoded(self, chunk: pa.RecordBatch) -> memoryview:
        """Return the chunk as bytes, which are valid until the next one is encoded."""
        size = _encode(chunk, pa.MockOutputStream())
        if len(self._memory) < size:
            self._memory = np.empty(size, np.uint8)
        data = self._memory[:size]
        _encode(chunk, pa.FixedSizeBufferWriter(pa.py_buffer(data)))
        return memoryview(data.data)

    def _put(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._size += len(data)


def read_chunks(file: Readable, entry: StateFile) -> Iterator[pa.RecordBatch]:
    """Yield the chunks of a file.

    Raises CorruptStateError in place of a damaged chunk, and before the first one unless the file has the right size.
    """
    size = file.seek(0, os.SEEK_END)
    if size != entry.size:
        raise CorruptStateError(f"{entry.path} has {size:,} bytes, and {entry.size:,} were written")
    file.seek(0, os.SEEK_SET)
    magic = bytes(file.read(len(MAGIC)))
    if magic != MAGIC and not magic.startswith(FIRST_MAGIC):
        raise CorruptStateError(f"{entry.path} is not a state file of this version of evenflow")
    for data in _checked(file, entry) if magic == MAGIC else _of_first_format(file, entry):
        try:
            yield from pa.ipc.open_stream(pa.py_buffer(data))
        except (pa.ArrowException, OSError) as error:
            raise CorruptStateError(f"{entry.path} holds a chunk that can't be read: {error}") from error


def _checked(file: Readable, entry: StateFile) -> Iterator[bytes | memoryview]:
    """Yield the bytes of each chunk behind the magic line."""
    headers = xxhash.xxh3_128()
    while header := file.read(_HEADER.size):
        data = file.read(_length(header, entry))
        if header != _header(data):
            raise _damaged(entry)
        headers.update(header)
        yield data
    if headers.hexdigest() != entry.checksum:
        raise _damaged(entry)


def _of_first_format(file: Readable, entry: StateFile) -> Iterator[bytes]:
    """Yield the bytes of each chunk of a file of the first format, copied, because their arrays begin anywhere."""
    file.seek(0, os.SEEK_SET)
    content = bytes(file.read(entry.size))
    if xxhash.xxh3_128_hexdigest(content) != entry.checksum:
        raise _damaged(entry)
    at = len(FIRST_MAGIC)
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at)
        at += 4 + length
        yield content[at - length : at]


def _header(data: bytes | memoryview) -> bytes:
    return _HEADER.pack(len(data), xxhash.xxh3_128_digest(data))


def _length(header: bytes | memoryview, entry: StateFile) -> int:
    if len(header) < _HEADER.size:
        raise _damaged(entry)
    length: int = _HEADER.unpack(header)[0]
    if length > entry.size:
        raise _damaged(entry)
    return length


def _damaged(entry: StateFile) -> CorruptStateError:
    return CorruptStateError(f"{entry.path} has another checksum than what was written: it is damaged")


def _encode(chunk: pa.RecordBatch, stream: pa.NativeFile) -> int:
    """Write a chunk to an Arrow stream; returns the number of bytes."""
    with pa.ipc.new_stream(stream, chunk.schema) as writer:
        writer.write_batch(chunk)
    return int(stream.tell())
