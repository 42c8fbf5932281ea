"""The files of a folder as they are now: each with the time of its last change, its size, and the bucket that says which reader reads it.

A path's bucket depends on nothing but the path, so readers agree on it without talking to each other.

>>> bucket_of(digest_of("/in/a.csv")) == bucket_of(digest_of("/in/a.csv")) < BUCKETS
True
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b

from ..remote import is_remote, look_at_remote

BUCKETS = 256
"""Also the most readers that have something to do."""

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, order=True)
class Arrived:
    """A file with the time of its last change (nanoseconds since 1970) and its size in bytes. The order is that of arrival."""

    changed: int
    path: str
    size: int


def digest_of(path: str) -> bytes:
    """`DIGEST_BYTES` bytes that stand for the path: that two of a billion paths share them has a chance below 1e-20."""
    return blake2b(path.encode(errors="surrogateescape"), digest_size=DIGEST_BYTES).digest()


def bucket_of(digest: bytes) -> int:
    """The bucket of a path with this digest, below `BUCKETS`."""
    return digest[0]


def look_at(path: str) -> Arrived | None:
    """The file as it is now, None if it is gone. Raises OSError."""
    if is_remote(path):
        remote = look_at_remote(path)
        return None if remote is None else Arrived(remote.changed, path, remote.size)
    try:
        found = os.stat(path)  # noqa: PTH116 -- for 100,000 files at a time Path costs more than the look itself
    except FileNotFoundError:
        return None
    return Arrived(found.st_mtime_ns, path, found.st_size)
