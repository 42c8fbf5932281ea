"""State files: chunks of keyed state in a file that is written once, and checked before anything is read from it.

A file is a magic line, then each chunk as its length (4 bytes, little endian) and an Arrow IPC stream of one batch. Its entry
holds the size and the XXH3 checksum of the whole file, so a truncated file or a flipped bit is always noticed.

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

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import pyarrow as pa
import xxhash

from .errors import CorruptStateError

MAGIC = b"evenflow state 1\n"
_LENGTH = struct.Struct("<I")
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file's entry: `path` relative to the folder of the manifest that lists it, `size` in bytes, `keys` in it."""

    path: str
    size: int
    checksum: str
    keys: int


def encoded(chunk: pa.RecordBatch) -> pa.Buffer:
    """Return a chunk in the format of the file."""
    stream = pa.BufferOutputStream()
    stream.write(_LENGTH.pack(_encode(chunk, pa.MockOutputStream())))
    _encode(chunk, stream)
    return stream.getvalue()


def _encode(chunk: pa.RecordBatch, stream: pa.NativeFile) -> int:
    """Write a chunk to an Arrow stream; returns the number of bytes."""
    begun = stream.tell()
    with pa.ipc.new_stream(stream, chunk.schema) as writer:
        writer.write_batch(chunk)
    return int(stream.tell() - begun)


class Writable(Protocol):
    """A file that a state file is written to."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Append bytes. Raises OSError if they can't be written."""


class StateFileWriter:
    """A writer that appends chunks to an open file, which the caller closes."""

    def __init__(self, file: Writable, path: str) -> None:
        self._file, self._path = file, path
        self._hash = xxhash.xxh3_128()
        self._size = self._keys = 0
        self._put(MAGIC)

    def write(self, chunk: pa.RecordBatch) -> None:
        """Append a chunk. Raises OSError if it can't be written."""
        self.append(encoded(chunk), chunk.num_rows)

    def append(self, chunk: pa.Buffer, keys: int) -> None:
        """Append a chunk of `keys` keys that is `encoded` already. Raises OSError if it can't be written."""
        self._put(memoryview(chunk))
        self._keys += keys

    def finish(self) -> StateFile:
        """Return the entry of the written file."""
        return StateFile(self._path, self._size, self._hash.hexdigest(), self._keys)

    def _put(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._hash.update(data)
        self._size += len(data)


def read_chunks(file: BinaryIO, entry: StateFile) -> Iterator[pa.RecordBatch]:
    """Yield the chunks of a seekable file. Raises CorruptStateError before the first chunk if the file is damaged."""
    check_file(file, entry)
    file.seek(len(MAGIC))
    while length := file.read(_LENGTH.size):
        data = file.read(_LENGTH.unpack(length)[0])
        try:
            yield from pa.ipc.open_stream(data)
        except (pa.ArrowException, OSError) as error:
            raise CorruptStateError(f"{entry.path} holds a chunk that can't be read: {error}") from error


def check_file(file: BinaryIO, entry: StateFile) -> None:
    """Read the whole file. Raises CorruptStateError unless its size and checksum match `entry`."""
    checksum, size = xxhash.xxh3_128(), 0
    magic = file.read(len(MAGIC))
    piece = magic
    while piece:
        checksum.update(piece)
        size += len(piece)
        piece = file.read(_PIECE)
    if size != entry.size:
        raise CorruptStateError(f"{entry.path} has {size:,} bytes, and {entry.size:,} were written")
    if checksum.hexdigest() != entry.checksum:
        raise CorruptStateError(f"{entry.path} has the checksum {checksum.hexdigest()}, and {entry.checksum} was written")
    if magic != MAGIC:
        raise CorruptStateError(f"{entry.path} is not a state file of this version of evenflow")
