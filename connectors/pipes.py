"""Messages on a pipe between two processes of one user: bytes, each message after its length (4 bytes, little endian).

>>> ends = os.pipe()
>>> write_message(ends[1], b"checkpoint 7")
>>> read_message(ends[0])
b'checkpoint 7'
>>> os.close(ends[1])
>>> read_message(ends[0]) is None
True
>>> os.close(ends[0])
"""

from __future__ import annotations

import os
import struct

LENGTH = struct.Struct("<I")
_PIECE = 1 << 20


def framed(message: bytes) -> bytes:
    """Put a message's length in front of it."""
    return LENGTH.pack(len(message)) + message


def write_message(pipe: int, message: bytes) -> None:
    """Write a message at once. Raises BrokenPipeError if the reader has closed the pipe."""
    data = memoryview(framed(message))
    while data:
        data = data[os.write(pipe, data) :]


def read_message(pipe: int) -> bytes | None:
    """Read the next message; None at the end, also within a message."""
    length = _read(pipe, LENGTH.size)
    return None if length is None else _read(pipe, LENGTH.unpack(length)[0])


def _read(pipe: int, size: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < size:
        piece = os.read(pipe, min(size - len(pieces), _PIECE))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)
