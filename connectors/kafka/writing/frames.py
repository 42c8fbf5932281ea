"""Frames on a pipe: msgpack maps, each preceded by its length (4 bytes, little endian).

>>> ends = os.pipe()
>>> write_frame(ends[1], {"checkpoint": 7})
>>> read_frame(ends[0])
{'checkpoint': 7}
>>> os.close(ends[1])
>>> read_frame(ends[0]) is None
True
>>> os.close(ends[0])
"""

from __future__ import annotations

import os
import struct
from typing import Any

import msgpack

_LENGTH = struct.Struct("<I")
_PIECE = 1 << 20


def write_frame(pipe: int, fields: dict[str, Any]) -> None:
    """Write a frame. Raises BrokenPipeError if the reader has closed the pipe."""
    body = msgpack.packb(fields)
    data = memoryview(_LENGTH.pack(len(body)) + body)
    while data:
        data = data[os.write(pipe, data) :]


def read_frame(pipe: int) -> dict[str, Any] | None:
    """Read the next frame; return None at the end of the pipe, even within a frame."""
    length = _read(pipe, _LENGTH.size)
    body = _read(pipe, _LENGTH.unpack(length)[0]) if length is not None else None
    return dict(msgpack.unpackb(body)) if body is not None else None


def _read(pipe: int, size: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < size:
        piece = os.read(pipe, min(size - len(pieces), _PIECE))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)
