"""State in a server that speaks the Redis protocol (Redis, Valkey, ...): it outlives workers, and a move of key groups only
renames hashes.

One hash per operator, key group and owner, under the attempt of the job: `evenflow:JOB:OPERATOR:ATTEMPT:OWNER:GROUP`. The owner
is in the name because a hot key's owner may differ from its group's. The worker's witness (`witness.py`) is stored next to the
groups. State of an older attempt or an earlier run is never read: its name contains another attempt, or it is removed when a
worker of the same attempt opens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from ..errors import StateBackendError
from .base import SNAPSHOT_CHUNK, Chunk, Found, StateBackend
from .frozen_changes import FrozenChanges
from .server_client import Command, ServerClient
from .settings import StateSettings
from .witness import Witness

_SCAN = 1_000
"""The names or fields that the server examines per call of SCAN and HSCAN."""

_WITNESS = "witness"
"""The part of a witness's name that replaces the group. A witness shows if the server still has the other keys."""


class RemoteBackend(StateBackend):
    """The state of worker `owner` of `operator` in a server."""

    passes_on = True

    def __init__(self, settings: StateSettings, operator: str, owner: int) -> None:
        self._operator = ":".join(("evenflow", quote(settings.job, safe=""), quote(operator, safe="")))  # escaped for SCAN's patterns
        self._attempt, self._owner = settings.attempt, owner
        self._groups: set[int] = set()
        """Groups that may have keys of this worker."""
        self._written_keys = self._written_bytes = 0
        self._frozen: _SnapshotOfHashes | FrozenChanges | None = None
        client = ServerClient(settings.backend, operator)
        self._sweep(client)
        self._client = Witness(client, self._name(_WITNESS))

    def get_many(self, groups: Sequence[int], keys: Sequence[bytes]) -> list[bytes | None]:
        places = _by_group(groups)
        commands: list[Command] = [("HMGET", self._name(group), *(keys[i] for i in where)) for group, where in places.items()]
        values: list[bytes | None] = [None] * len(keys)
        for where, reply in zip(places.values(), self._client.run(commands), strict=True):
            for i, value in zip(where, reply, strict=True):
                values[i] = value
        return values

    def put_many(self, groups: Sequence[int], keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self.note(groups, keys)
        self._before(groups, keys)
        commands: list[Command] = []
        for group, where in _by_group(groups).items():
            self._groups.add(group)
            commands.append(("HSET", self._name(group), *(word for i in where for word in (keys[i], values[i]))))
        self._client.run(commands)
        self._written_keys += len(keys)
        self._written_bytes += sum(map(len, keys)) + sum(map(len, values))

    def delete_many(self, groups: Sequence[int], keys: Sequence[bytes]) -> None:
        self.note(groups, keys)
        self._before(groups, keys)
        self._client.run([("HDEL", self._name(group), *(keys[i] for i in where)) for group, where in _by_group(groups).items()])

    def delete_groups(self, groups: Sequence[int]) -> None:
        if self._frozen is not None:
            for group, found in zip(groups, self._client.run([("HKEYS", self._name(group)) for group in groups]), strict=True):
                self._before([group] * len(found), found)
        self._unlink([self._name(group) for group in groups])
        self._groups.difference_update(groups)

    def keys_of(self, group: int) -> list[bytes]:
        keys: list[bytes] = self._client.run([("HKEYS", self._name(group))])[0]
        return keys

    def items_of(self, groups: Sequence[int]) -> Chunk:
        replies = self._client.run([("HGETALL", self._name(group)) for group in groups])
        return [key for flat in replies for key in flat[::2]], [value for flat in replies for value in flat[1::2]]

    def snapshot(self) -> Iterator[Chunk]:
        self._client.check_policy()
        self._frozen = frozen = _SnapshotOfHashes(self._client, {group: self._name(group) for group in sorted(self._groups)})
        return frozen

    def delta(self, changes: set[Any]) -> Iterator[Found]:
        self._client.check_policy()
        self._frozen = frozen = FrozenChanges(changes, self._read, SNAPSHOT_CHUNK)
        return frozen

    def count(self) -> int:
        return sum(self._client.run([("HLEN", self._name(group)) for group in self._groups]))

    def nbytes(self) -> int:
        """Return an estimate: every entry counts with the mean size of all writes."""
        return self.count() * self._written_bytes // max(1, self._written_keys)

    def pass_on(self, groups: Sequence[int], target: int) -> Iterator[list[bytes]] | None:
        if target == self._owner:
            return None
        exist = self._client.run([("EXISTS", self._name(group)) for group in groups])
        here = [group for group, exists in zip(groups, exist, strict=True) if exists]
        self._noted = None if here else self._noted  # keys are read later, and the target may have forgotten some by then
        replies = self._client.run([("RENAMENX", self._name(group), self._name(group, target)) for group in here])
        for group, done in zip(here, replies, strict=True):
            if not done:
                self._merge(group, target)
        self._groups.difference_update(groups)
        return (self._client.run([("HKEYS", self._name(group, target))])[0] for group in here)

    def take_over(self, groups: Sequence[int]) -> None:
        self._groups.update(groups)

    def clear(self) -> None:
        self._frozen = self._noted = None
        mine = f"{self._operator}:{self._attempt}:{self._owner}:"
        names = _find(self._client, f"{mine}*")
        self._unlink([name for name in names if name.removeprefix(mine.encode()).isdigit()])
        self._groups.clear()

    def close(self) -> None:
        """Remove this worker's state, if the server is available. State that was handed over has its new owner's name."""
        with suppress(StateBackendError):
            self._unlink([*(self._name(group) for group in self._groups), self._name(_WITNESS)])
        self._client.close()

    def _name(self, group: int | str, owner: int | None = None) -> str:
        return f"{self._operator}:{self._attempt}:{self._owner if owner is None else owner}:{group}"

    def _before(self, groups: Sequence[int], keys: Sequence[bytes]) -> None:
        """Let a snapshot keep values that are about to be overwritten."""
        if self._frozen is not None:
            if self._frozen.over:
                self._frozen = None
            elif isinstance(self._frozen, FrozenChanges):
                self._frozen.before(zip(groups, keys, strict=True))
            else:
                self._frozen.keep(groups, keys)

    def _read(self, places: set[tuple[int, bytes]]) -> Found:
        """Return these keys with their values, None for deleted ones."""
        groups, keys = zip(*places, strict=True)
        return list(keys), self.get_many(groups, keys)

    def _merge(self, group: int, target: int) -> None:
        """Add the keys of this group to the target's hash, which exists already."""
        name, cursor = self._name(group), b"0"
        while True:
            cursor, pairs = self._client.run([("HSCAN", name, cursor, "COUNT", _SCAN)])[0]
            if pairs:
                self._client.run([("HSET", self._name(group, target), *pairs)])
            if cursor == b"0":
                break
        self._unlink([name])

    def _sweep(self, client: ServerClient) -> None:
        """Remove hashes of a worker with this index from earlier attempts, and from earlier runs with the same attempt."""
        names = _find(client, f"{self._operator}:*:{self._owner}:*")
        old = [name for name in names if (attempt := self._attempt_of(name)) is not None and attempt <= self._attempt]
        if old:
            client.run([("UNLINK", *old)])

    def _attempt_of(self, name: bytes) -> int | None:
        """Return the attempt in a name; None if the name belongs to another operator or worker."""
        attempt, *rest = name.removeprefix(f"{self._operator}:".encode()).split(b":")
        mine = len(rest) == 2 and rest[0] == b"%d" % self._owner and (rest[1].isdigit() or rest[1] == _WITNESS.encode())
        return int(attempt) if mine and attempt.isdigit() else None

    def _unlink(self, names: Sequence[bytes | str]) -> None:
        if names:
            self._client.run([("UNLINK", *names)])


def _find(client: ServerClient | Witness, pattern: str) -> list[bytes]:
    """List the names of all hashes that match."""
    found, cursor = list[bytes](), b"0"
    while True:
        cursor, names = client.run([("SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN)])[0]
        found += names
        if cursor == b"0":
            return found


class _SnapshotOfHashes:
    """A snapshot of the hashes `names` (by group), read group by group; `keep` saves values of unread groups before they change."""

    def __init__(self, client: Witness, names: dict[int, str]) -> None:
        self._client, self._names = client, names
        self._old: dict[int, dict[bytes, bytes | None]] = {group: {} for group in names}
        self._ready: list[tuple[bytes, bytes]] = []
        self._at_once = 1

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while self._old and len(self._ready) < SNAPSHOT_CHUNK:
            self._read()
        taken, self._ready = self._ready[:SNAPSHOT_CHUNK], self._ready[SNAPSHOT_CHUNK:]
        if not taken:
            raise StopIteration
        return [key for key, _ in taken], [value for _, value in taken]

    @property
    def over(self) -> bool:
        """True if all chunks have been read."""
        return not self._old

    def keep(self, groups: Sequence[int], keys: Sequence[bytes]) -> None:
        """Save values of these keys, which are about to change."""
        places = {group: [keys[i] for i in where] for group, where in _by_group(groups).items() if group in self._old}
        requested = {group: [key for key in wanted if key not in self._old[group]] for group, wanted in places.items()}
        requested = {group: wanted for group, wanted in requested.items() if wanted}
        replies = self._client.run([("HMGET", self._names[group], *wanted) for group, wanted in requested.items()])
        for (group, wanted), values in zip(requested.items(), replies, strict=True):
            self._old[group].update(zip(wanted, values, strict=True))

    def _read(self) -> None:
        """Read about a chunk of groups in one round trip."""
        groups = list(self._old)[: self._at_once]
        read = 0
        for group, flat in zip(groups, self._client.run([("HGETALL", self._names[group]) for group in groups]), strict=True):
            now: dict[bytes, bytes | None] = dict(zip(flat[::2], flat[1::2], strict=True))
            now.update(self._old.pop(group))
            self._ready += [(key, value) for key, value in now.items() if value is not None]
            read += len(flat) // 2
        self._at_once = self._at_once * 2 if read < SNAPSHOT_CHUNK else max(1, self._at_once // 2)


def _by_group(groups: Sequence[int]) -> dict[int, list[int]]:
    """Return the positions of each group in the call."""
    places: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    return places
