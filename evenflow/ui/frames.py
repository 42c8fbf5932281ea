"""Python objects through a pipe between two processes of one user: a length of four bytes, then a pickle.

>>> from io import BytesIO
>>> pipe = BytesIO()
>>> write(pipe, ("link", "delays"))
>>> pipe.getvalue()[:4] == len(pipe.getvalue()[4:]).to_bytes(4, "big"), unpacked(pipe.getvalue()[4:])
(True, ('link', 'delays'))
"""

from __future__ import annotations

import pickle
from typing import Any, BinaryIO

LENGTH = 4
"""Bytes of the length before each object."""


def write(pipe: BinaryIO, message: Any) -> None:
    """At once, so that the other side need not wait for the next one."""
    pipe.write(packed(message))
    pipe.flush()


def packed(message: Any) -> bytes:
    """With its length."""
    data = pickle.dumps(message)
    return len(data).to_bytes(LENGTH, "big") + data


def read(pipe: BinaryIO) -> Any:
    """The next one, None when the other side has closed the pipe."""
    head = pipe.read(LENGTH)
    length = int.from_bytes(head, "big")
    body = pipe.read(length) if len(head) == LENGTH else b""
    return unpacked(body) if body and len(body) == length else None


def unpacked(packed: bytes) -> Any:
    """What was written, without its length."""
    return pickle.loads(packed)  # noqa: S301 -- a child process that we started ourselves wrote it
