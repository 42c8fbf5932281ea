"""The interface of state backends: the keyed state of one operator in one worker, by key group and key, read and written by batch.

Invariant: a read sees every earlier write; a snapshot shows the state at the time of its call, independent of later writes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import StateBackendError

SNAPSHOT_CHUNK = 2_048
"""The keys in a chunk of a snapshot. A chunk delays the next batch by 1 to 2 ms."""

MOST_NOTED = 1 << 18
"""The most keys noted for a delta, some 50 MB of names: state outside memory may be larger than memory."""

Chunk = tuple[list[Any], list[bytes]]
"""Keys, and the packed value of each."""

Found = tuple[list[Any], list[bytes | None]]
"""Keys, and the packed value of each, None for a deleted key."""


_PANES = 1 << 79
_EARLIEST = -(1 << 63)


def pane_group(pane: int, group: int) -> int:
    """Return the backend's group for keys in pane `pane` (microseconds) and key group `group`.

    With it, a range scan reads or deletes one pane. The number is larger than any key group. Its highest bits are the pane,
    rising with time, and its lowest bits the key group.
    """
    return _PANES | (pane - _EARLIEST) << 15 | group


class StateBackend(ABC):
    """The keyed state of one operator in one worker. Used by one thread. A call's keys are distinct. A group is a key group or a
    `pane_group`.

    `objects`: the dict of a backend that keeps Python objects by Python keys; its user may read and change it without a call.
    Other backends (None) take keys and values as bytes.
    """

    objects: dict[Any, Any] | None = None

    passes_on = False
    """True if `pass_on` can hand over groups without moving their state."""

    @abstractmethod
    def get_many(self, groups: Sequence[int], keys: Sequence[Any]) -> list[Any]:
        """Return the value of each key, None if there is none. Called once per batch, before its records are processed."""

    @abstractmethod
    def put_many(self, groups: Sequence[int], keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Store values. Called once per batch, after its records, with the changed values; and with state that arrives from
        another worker.
        """

    @abstractmethod
    def delete_many(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        """Delete keys; some may not exist. Called once per batch, and when state was sent to another worker."""

    @abstractmethod
    def keys_of(self, group: int) -> list[Any]:
        """List the keys of a group."""

    def listed(self, group: int) -> list[Any]:
        """List the keys of a group that leaves, for `take_many`; deleted keys and duplicates may be among them."""
        return self.keys_of(group)

    def take_many(self, groups: Sequence[int], keys: Sequence[Any]) -> list[Any]:
        """Delete keys and return their values, None if there is none. Called with keys from `listed` whose state is sent away."""
        found = self.get_many(groups, keys)
        self.delete_many(groups, keys)
        return found

    def items_of(self, groups: Sequence[int]) -> Chunk:
        """Return all keys and values of groups, which are read one after the other."""
        keys, values = list[Any](), list[Any]()
        for group in groups:
            found = self.keys_of(group)
            keys += found
            values += self.get_many([group] * len(found), found)
        return keys, values

    def delete_groups(self, groups: Sequence[int]) -> None:
        """Delete the groups of a pane that no window needs. These deletions needn't be noted."""
        for group in groups:
            found = self.keys_of(group)
            self.delete_many([group] * len(found), found)

    @abstractmethod
    def snapshot(self) -> Iterator[Chunk]:
        """Begin a snapshot, which ends the previous one. Called at a checkpoint's barrier.

        Its chunks are taken one by one between later batches.
        """

    _noted: set[Any] | None = None

    def changes(self) -> set[Any] | None:
        """Return the keys written or deleted since the last call, for `delta`; None if unknown. Called at a checkpoint's barrier.

        From then on changes are noted.
        """
        noted, self._noted = self._noted, set()
        return noted

    def note(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        """Note keys that are written, deleted or taken over. With more than `MOST_NOTED`, the changes are unknown."""
        if self._noted is not None:
            self._noted.update(zip(groups, keys, strict=True))
            if len(self._noted) > MOST_NOTED:
                self._noted = None

    @contextmanager
    def unnoted(self) -> Iterator[None]:
        """Return a block in which written keys are not noted as changed."""
        noted, self._noted = self._noted, None
        yield
        self._noted = noted

    @abstractmethod
    def delta(self, changes: set[Any]) -> Iterator[Found]:
        """Begin a snapshot of the noted keys only."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of keys. Called about once a second."""

    @abstractmethod
    def nbytes(self) -> int:
        """Return an estimate of the state's bytes. Called about once a second."""

    def pass_on(self, groups: Sequence[int], target: int) -> Iterator[list[Any]] | None:
        """Hand over whole key groups to worker `target`. Returns None if their state must be read, sent and deleted instead.

        Otherwise the state stays in place and belongs to the target at once, and the iterator yields the keys of each group.
        """
        return None

    def take_over(self, groups: Sequence[int]) -> None:
        """Take over groups that now belong to this worker. Called in the worker that `pass_on` named."""
        raise StateBackendError(f"{type(self).__name__} can't take state over without its values")

    @abstractmethod
    def clear(self) -> None:
        """Delete all state."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections, and delete their content. Called once when the worker's task ends, also after an error."""
