"""State in LMDB files: larger than memory, as large as the disk.

Nothing is synced to the disk, since checkpoints are what state is restored from. The files have no names any more once they are open:
their space is free again when the process ends, however it ends.

>>> states = LmdbBackend("count", folder=None)
>>> states.put_many([1, 2], [b"a", b"b"], [b"one", b"two"])
>>> states.get_many([1, 3], [b"a", b"c"]), states.keys_of(2)
([b'one', None], [b'b'])
>>> states.close()
"""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TypeVar

import lmdb

from .base import SNAPSHOT_CHUNK, Chunk, StateBackend, StateBackendError

FIRST_SIZE = 4 << 30
"""Bytes of the map at first: addresses, not memory. It is doubled when it is full."""

ROOM = 4
"""A snapshot begins with a map at least so many times as large as what is in it, because none can grow while a snapshot is being read."""

_WHOLE, _DIGEST = b"\0", b"\1"
_GROUP = struct.Struct(">H")
_LENGTH = struct.Struct("<I")
_DIGEST_BYTES = 32

T = TypeVar("T")


class LmdbBackend(StateBackend):
    """A key lies under its group (2 bytes), so that a group's keys are neighbours; one that LMDB finds too long lies under its digest."""

    def __init__(self, operator: str, folder: str | None, first_size: int = FIRST_SIZE) -> None:
        self._operator, self._folder, self._size = operator, folder if folder is not None else tempfile.gettempdir(), first_size
        try:
            self._env = _open_unnamed(folder, first_size)
        except (OSError, lmdb.Error) as error:
            problem = f"can't keep its state in {self._folder}: {error}; let state_dir name a folder on a local disk with room"
            raise StateBackendError(f"operator `{operator}` {problem}") from error
        self._longest = self._env.max_key_size() - _GROUP.size - 1
        self._frozen: _Snapshot | None = None

    def get_many(self, groups: Sequence[int], keys: Sequence[bytes]) -> list[bytes | None]:
        with self._env.begin() as txn:
            get = txn.get
            return [self._value(place, get(place)) for place in map(self._place, groups, keys)]

    def put_many(self, groups: Sequence[int], keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        places = list(map(self._place, groups, keys))
        pairs = sorted(zip(places, map(_stored, places, keys, values), strict=True))
        self._write(lambda txn: txn.cursor().putmulti(pairs))

    def delete_many(self, groups: Sequence[int], keys: Sequence[bytes]) -> None:
        places = sorted(map(self._place, groups, keys))

        def delete(txn: lmdb.Transaction) -> None:
            for place in places:
                txn.delete(place)

        self._write(delete)

    def keys_of(self, group: int) -> list[bytes]:
        prefix, keys = _GROUP.pack(group), []
        with self._env.begin() as txn, txn.cursor() as cursor:
            found = cursor.set_range(prefix)
            while found and (place := cursor.key()).startswith(prefix):
                keys.append(_opened(place, cursor.value())[0] if place[2:3] == _DIGEST else place[3:])
                found = cursor.next()
        return keys

    def snapshot(self) -> Iterator[Chunk]:
        self._end_snapshot()
        while self.nbytes() * ROOM > self._size:
            self._grow()
        self._frozen = _Snapshot(self._env)
        return self._frozen

    def count(self) -> int:
        return int(self._env.stat()["entries"])

    def nbytes(self) -> int:
        stat = self._env.stat()
        return int(stat["psize"]) * int(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])

    def clear(self) -> None:
        def drop(txn: lmdb.Transaction) -> None:
            txn.drop(self._env.open_db(txn=txn), delete=False)

        self._write(drop)

    def close(self) -> None:
        self._end_snapshot()
        self._env.close()

    def _place(self, group: int, key: bytes) -> bytes:
        if len(key) <= self._longest:
            return _GROUP.pack(group) + _WHOLE + key
        return _GROUP.pack(group) + _DIGEST + blake2b(key, digest_size=_DIGEST_BYTES).digest()

    def _value(self, place: bytes, stored: bytes | None) -> bytes | None:
        return stored if stored is None or place[2:3] == _WHOLE else _opened(place, stored)[1]

    def _write(self, change: Callable[[lmdb.Transaction], T]) -> T:
        """Make a change whole, in a larger map if need be. Raises StateBackendError naming the operator if the disk is full."""
        while True:
            try:
                with self._env.begin(write=True) as txn:
                    return change(txn)
            except lmdb.MapFullError:
                self._grow()
            except lmdb.Error as error:
                problem = f"its state can't be written: {error}; is the disk full that state_dir ({self._folder}) names?"
                raise StateBackendError(f"operator `{self._operator}`: {problem}") from error

    def _grow(self) -> None:
        """Double the map. What is left of a snapshot is read first: no transaction may be open while the map changes."""
        if self._frozen is not None:
            self._frozen.read_ahead()
        self._size *= 2
        self._env.set_mapsize(self._size)

    def _end_snapshot(self) -> None:
        if self._frozen is not None:
            self._frozen.close()
            self._frozen = None


def _open_unnamed(folder: str | None, size: int) -> lmdb.Environment:
    """An environment in files that lose their names at once."""
    place = tempfile.mkdtemp(prefix="evenflow-state-", dir=folder)
    try:
        return lmdb.open(place, map_size=size, sync=False, metasync=False, readahead=False, max_readers=8)
    finally:
        shutil.rmtree(place, ignore_errors=True)


class _Snapshot:
    """Chunks read in one read transaction, which sees none of the later writes."""

    def __init__(self, env: lmdb.Environment) -> None:
        self._txn: lmdb.Transaction | None = env.begin()
        self._items = iter(self._txn.cursor())

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        items = list(islice(self._items, SNAPSHOT_CHUNK))
        if not items:
            self.close()
            raise StopIteration
        keys, values = zip(*(_opened(place, stored) for place, stored in items), strict=True)
        return list(keys), list(values)

    def read_ahead(self) -> None:
        """Keep what is left in memory, and end the transaction."""
        self._items = iter(list(self._items))
        self._abort()

    def close(self) -> None:
        self._items = iter(())
        self._abort()

    def _abort(self) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None


def _stored(place: bytes, key: bytes, value: bytes) -> bytes:
    """A value as it lies there: behind its key, if that is too long to be found by."""
    return value if place[2:3] == _WHOLE else _LENGTH.pack(len(key)) + key + value


def _opened(place: bytes, stored: bytes) -> tuple[bytes, bytes]:
    """Key and value."""
    if place[2:3] == _WHOLE:
        return place[3:], stored
    end = _LENGTH.size + _LENGTH.unpack_from(stored)[0]
    return stored[_LENGTH.size : end], stored[end:]
