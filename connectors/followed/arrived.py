"""The current state of followed files: time of last change, size, and the bucket that assigns the file to a reader.

A path's bucket depends on the path alone, so readers agree on it without communication.

>>> bucket_of(digest_of("/in/a.csv")) == bucket_of(digest_of("/in/a.csv")) < BUCKETS
True
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b

from ..files.remote import is_remote, look_at_remote

BUCKETS = 256
"""The number of buckets, and so the most readers that can share the files."""

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, order=True)
class ArrivedFile:
    """A file with the time of its last change (nanoseconds since 1970) and its size in bytes. Sorts by arrival."""

    changed: int
    path: str
    size: int


def digest_of(path: str) -> bytes:
    """Hash a path to `DIGEST_BYTES` bytes. The chance that two of a billion paths share them is below 1e-20."""
    return blake2b(path.encode(errors="surrogateescape"), digest_size=DIGEST_BYTES).digest()


def bucket_of(digest: bytes) -> int:
    """Return the bucket of a path with this digest, below `BUCKETS`."""
    return digest[0]


def look_at(path: str) -> ArrivedFile | None:
    """Return the file's current state, or None if it doesn't exist. Raises OSError."""
    if is_remote(path):
        remote = look_at_remote(path)
        return None if remote is None else ArrivedFile(remote.changed, path, remote.size)
    try:
        found = os.stat(path)  # noqa: PTH116 -- for 100,000 files at a time Path costs more than the look itself
    except FileNotFoundError:
        return None
    return ArrivedFile(found.st_mtime_ns, path, found.st_size)
