"""State in LMDB files: larger than memory, as large as the disk.

Nothing is synced to the disk, because state is restored from checkpoints. The files are unlinked once they are open: the system
frees their space when the process ends, however it ends.

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
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast

import lmdb

from ..errors import StateBackendError, StateFolderError
from .base import SNAPSHOT_CHUNK, Chunk, Found, StateBackend
from .page_reads import PageReads

FIRST_SIZE = 4 << 30
"""The initial bytes of the map: addresses, not memory. It doubles when it is full."""

ROOM = 4
"""The least ratio of map size to content at the start of a snapshot, because the map can't grow while a snapshot is read."""

_WHOLE, _DIGEST = b"\0", b"\1"
_GROUP = struct.Struct(">H")
_PANE_GROUP_BYTES = 10
_PLAIN_GROUPS = 1 << 15
_LENGTH = struct.Struct("<I")
_DIGEST_BYTES = 32
_PREFIXES = 1 << 17
"""The number of groups whose prefix is cached; groups of panes are temporary."""

_GROUPS_AT_ONCE = 64

T = TypeVar("T")
V = TypeVar("V")


class LmdbBackend(StateBackend):
    """A backend that stores keys by group, so that a group's keys are adjacent. A key that is too long for LMDB is stored under
    its digest.

    A key group takes 2 bytes, with the first bit 0; the group of a pane takes 10 bytes, with the first bit 1.
    """

    def __init__(self, operator: str, folder: str | None, first_size: int = FIRST_SIZE) -> None:
        self._operator, self._folder, self._size = operator, folder if folder is not None else tempfile.gettempdir(), first_size
        try:
            self._env = _open_unnamed(folder, first_size)
        except (OSError, lmdb.Error) as error:
            raise StateFolderError(operator, self._folder, str(error), getattr(error, "errno", None)) from error
        self._reads = PageReads(self._env)
        self._longest = self._env.max_key_size() - _PANE_GROUP_BYTES - 1
        self._frozen: _SnapshotOfTransaction[Any] | None = None
        self._prefixes = _Prefixes()

    def get_many(self, groups: Sequence[int], keys: Sequence[bytes]) -> list[bytes | None]:
        whole = self._whole(groups, keys)
        places = whole if whole is not None else list(map(self._place, groups, keys))
        with self._reading() as txn:
            values = self._reads.values(txn, places)
        return values if whole is not None else list(map(self._value, places, values))

    def put_many(self, groups: Sequence[int], keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self.note(groups, keys)
        places = self._whole(groups, keys)
        if places is None:
            places = list(map(self._place, groups, keys))
            values = list(map(_stored, places, keys, values))
        pairs = sorted(zip(places, values, strict=True), key=itemgetter(0))
        self._write(lambda txn: txn.cursor().putmulti(pairs))

    def delete_many(self, groups: Sequence[int], keys: Sequence[bytes]) -> None:
        self.note(groups, keys)
        places = sorted(map(self._place, groups, keys))

        def delete(txn: lmdb.Transaction) -> None:
            for place in places:
                txn.delete(place)

        self._write(delete)

    def delete_groups(self, groups: Sequence[int]) -> None:
        """Delete _GROUPS_AT_ONCE groups per transaction: deletions cost memory until the end of their transaction."""
        prefixes = list(map(_prefix, groups))
        while prefixes:
            some, prefixes = prefixes[:_GROUPS_AT_ONCE], prefixes[_GROUPS_AT_ONCE:]
            self._write(partial(_delete_ranges, some))

    def keys_of(self, group: int) -> list[bytes]:
        return self.items_of([group])[0]

    def items_of(self, groups: Sequence[int]) -> Chunk:
        keys, values = list[bytes](), list[bytes]()
        with self._reading() as txn, txn.cursor() as cursor:
            for group in groups:
                prefix = _prefix(group)
                whole, start = prefix + _WHOLE, len(prefix) + 1
                if not cursor.set_range(prefix):
                    continue
                for place, stored in _items(cursor):
                    if place.startswith(whole):
                        keys.append(place[start:])
                        values.append(stored)
                    elif place.startswith(prefix):
                        key, value = _unstored(place, stored)
                        keys.append(key)
                        values.append(value)
                    else:
                        break
        return keys, values

    def snapshot(self) -> Iterator[Chunk]:
        self._end_snapshot()
        self._make_room()
        self._frozen = frozen = _SnapshotOfTransaction(
            self._env, lambda txn: (_unstored(place, stored) for place, stored in _items(txn.cursor()))
        )
        return frozen

    def delta(self, changes: set[Any]) -> Iterator[Found]:
        self._end_snapshot()

        def read(txn: lmdb.Transaction) -> Iterator[tuple[bytes, bytes | None]]:
            for group, key in changes:
                place = self._place(group, key)
                yield key, self._value(place, cast("bytes | None", txn.get(place)))

        self._make_room()
        self._frozen = frozen = _SnapshotOfTransaction(self._env, read)
        return frozen

    def count(self) -> int:
        return int(self._env.stat()["entries"])

    def nbytes(self) -> int:
        stat = self._env.stat()
        return int(stat["psize"]) * int(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])

    def clear(self) -> None:
        self._noted = None

        def drop(txn: lmdb.Transaction) -> None:
            txn.drop(self._env.open_db(txn=txn), delete=False)

        self._write(drop)

    def close(self) -> None:
        self._end_snapshot()
        self._reads.close()
        self._env.close()

    def _whole(self, groups: Sequence[int], keys: Sequence[bytes]) -> list[bytes] | None:
        """Return the places of the keys, or None if some are too long."""
        if max(map(len, keys), default=0) > self._longest:
            return None
        if len(self._prefixes) > _PREFIXES:
            self._prefixes.clear()
        prefixes = self._prefixes
        return [prefixes[group] + key for group, key in zip(groups, keys, strict=True)]

    def _place(self, group: int, key: bytes) -> bytes:
        if len(key) <= self._longest:
            return _prefix(group) + _WHOLE + key
        return _prefix(group) + _DIGEST + blake2b(key, digest_size=_DIGEST_BYTES).digest()

    def _value(self, place: bytes, stored: bytes | None) -> bytes | None:
        return stored if stored is None or _is_whole(place) else _unstored(place, stored)[1]

    @contextmanager
    def _reading(self) -> Iterator[lmdb.Transaction]:
        """Open a read transaction. Raises StateBackendError naming the operator if the files are damaged."""
        try:
            with self._env.begin() as txn:
                yield txn
        except lmdb.Error as error:
            raise StateBackendError(f"operator `{self._operator}`: its state in {self._folder} can't be read: {error}") from error

    def _write(self, change: Callable[[lmdb.Transaction], T]) -> T:
        """Make a change in one transaction, in a larger map if necessary.

        Raises StateBackendError naming the operator if the disk is full.
        """
        while True:
            try:
                with self._env.begin(write=True) as txn:
                    return change(txn)
            except lmdb.MapFullError:
                self._grow()
            except lmdb.Error as error:
                problem = f"its state can't be written: {error}; is the disk of {self._folder} full? (StateConfig(dir=...))"
                raise StateBackendError(f"operator `{self._operator}`: {problem}") from error

    def _grow(self) -> None:
        """Double the map. The rest of a snapshot is read first: no transaction may be open while the map changes."""
        if self._frozen is not None:
            self._frozen.read_ahead()
        self._size *= 2
        self._env.set_mapsize(self._size)

    def _make_room(self) -> None:
        while self.nbytes() * ROOM > self._size:
            self._grow()

    def _end_snapshot(self) -> None:
        if self._frozen is not None:
            self._frozen.close()
            self._frozen = None


def _open_unnamed(folder: str | None, size: int) -> lmdb.Environment:
    """Open an LMDB environment and unlink its files at once."""
    place = tempfile.mkdtemp(prefix="evenflow-state-", dir=folder)
    try:
        return lmdb.open(place, map_size=size, sync=False, metasync=False, readahead=False, max_readers=PageReads.READERS)
    finally:
        shutil.rmtree(place, ignore_errors=True)


class _SnapshotOfTransaction(Generic[V]):
    """Keys and values in chunks, which `read` finds in one read transaction that sees no later writes."""

    def __init__(self, env: lmdb.Environment, read: Callable[[lmdb.Transaction], Iterator[tuple[bytes, V]]]) -> None:
        self._txn: lmdb.Transaction | None = env.begin()
        self._items = read(self._txn)

    def __iter__(self) -> Iterator[tuple[list[bytes], list[V]]]:
        return self

    def __next__(self) -> tuple[list[bytes], list[V]]:
        items = list(islice(self._items, SNAPSHOT_CHUNK))
        if not items:
            self.close()
            raise StopIteration
        keys, values = zip(*items, strict=True)
        return list(keys), list(values)

    def read_ahead(self) -> None:
        """Read the rest into memory, and end the transaction."""
        self._items = iter(list(self._items))
        self._abort()

    def close(self) -> None:
        self._items = iter(())
        self._abort()

    def _abort(self) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None


class _Prefixes(dict[int, bytes]):
    """A cache by group of the prefix of its keys' places."""

    def __missing__(self, group: int) -> bytes:
        prefix = self[group] = _prefix(group) + _WHOLE
        return prefix


def _prefix(group: int) -> bytes:
    return _GROUP.pack(group) if group < _PLAIN_GROUPS else group.to_bytes(_PANE_GROUP_BYTES, "big")


def _items(cursor: lmdb.Cursor) -> Iterator[tuple[bytes, bytes]]:
    """Yield places and their content, from the cursor on, as bytes, because the transaction gives no views of its buffers."""
    return cast("Iterator[tuple[bytes, bytes]]", iter(cursor))


def _delete_ranges(prefixes: Sequence[bytes], txn: lmdb.Transaction) -> None:
    with txn.cursor() as cursor:
        for prefix in prefixes:
            found = cursor.set_range(prefix)
            while found and cast("bytes", cursor.key()).startswith(prefix):
                found = cursor.delete()


def _key_at(place: bytes) -> int:
    """Return the offset of the key in a place: after the group and a byte for the form of the key."""
    return 1 + (_PANE_GROUP_BYTES if place[0] & 0x80 else _GROUP.size)


def _is_whole(place: bytes) -> bool:
    start = _key_at(place)
    return place[start - 1 : start] == _WHOLE


def _stored(place: bytes, key: bytes, value: bytes) -> bytes:
    """Return a value in its stored form: after its key, if the key is too long for a place."""
    return value if _is_whole(place) else _LENGTH.pack(len(key)) + key + value


def _unstored(place: bytes, stored: bytes) -> tuple[bytes, bytes]:
    """Return key and value; the inverse of `_stored`."""
    if _is_whole(place):
        return place[_key_at(place) :], stored
    end = _LENGTH.size + _LENGTH.unpack_from(stored)[0]
    return stored[_LENGTH.size : end], stored[end:]
