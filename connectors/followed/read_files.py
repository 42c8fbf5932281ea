"""The files of a followed folder that were read, by bucket: checkpoints contain them so that each file is read once.

A bucket remembers the files that it has read until the time of their last change is `max_age` before that of its newest file. A
file that is as old and isn't remembered was either read or arrived too late, and is not read. So a bucket remembers the files of
`max_age` only, and its decisions depend on its own files alone, not on the number of readers.

>>> read = ReadFiles(max_age=10)
>>> read.add(ArrivedFile(5, "a", 1)); read.add(ArrivedFile(9, "b", 1))
>>> again = ReadFiles(10, read.encode([*range(256)]))
>>> [again.is_new(file) for file in (ArrivedFile(5, "a", 1), ArrivedFile(9, "b", 1), ArrivedFile(9, "c", 1))]
[False, False, True]
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .arrived import DIGEST_BYTES, ArrivedFile, bucket_of, digest_of

_ENTRY = struct.Struct(f">{DIGEST_BYTES}sqq")


@dataclass(slots=True)
class _Bucket:
    newest: int
    files: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    def forget(self, max_age: int) -> None:
        if any(changed <= self.newest - max_age for changed, _ in self.files.values()):
            self.files = {digest: seen for digest, seen in self.files.items() if seen[0] > self.newest - max_age}


class ReadFiles:
    """The files that were read. `encoded`: a result of `encode`."""

    def __init__(self, max_age: int, encoded: Iterable[Sequence[Any]] = ()) -> None:
        self._max_age = max_age
        self._buckets = {
            bucket: _Bucket(newest, {digest: (changed, size) for digest, changed, size in _ENTRY.iter_unpack(files)})
            for bucket, newest, files in encoded
        }

    def __len__(self) -> int:
        return sum(len(bucket.files) for bucket in self._buckets.values())

    def is_new(self, file: ArrivedFile) -> bool:
        """Return True if the file must be read. Raises ValueError if it was read and has changed since."""
        digest = digest_of(file.path)
        bucket = self._buckets.get(bucket_of(digest))
        if bucket is None:
            return True
        seen = bucket.files.get(digest)
        if seen is None or seen[0] <= bucket.newest - self._max_age:
            return file.changed > bucket.newest - self._max_age
        if seen != (file.changed, file.size):
            raise ValueError(file.path)
        return False

    def add(self, file: ArrivedFile) -> None:
        """Record that the file was read."""
        digest = digest_of(file.path)
        bucket = self._buckets.setdefault(bucket_of(digest), _Bucket(file.changed))
        bucket.newest = max(bucket.newest, file.changed)
        bucket.files[digest] = (file.changed, file.size)

    def encode(self, buckets: Iterable[int]) -> list[list[Any]]:
        """Encode the memory of `buckets`, msgpack-able: `[bucket, newest, files]` for each that has read files."""
        encoded = list[list[Any]]()
        for number in buckets:
            bucket = self._buckets.get(number)
            if bucket is not None:
                bucket.forget(self._max_age)
                files = b"".join(_ENTRY.pack(digest, *seen) for digest, seen in bucket.files.items())
                encoded.append([number, bucket.newest, files])
        return encoded
