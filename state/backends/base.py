"""The interface of state backends: the keyed state of one operator in one worker, by key group and key, read and written by batch.

Invariant: a read sees every earlier write; a snapshot shows the state at the time of its call, whatever is written meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import StateBackendError

SNAPSHOT_CHUNK = 2_048
"""Keys in a chunk of a snapshot. A chunk delays the next batch by 1 to 2 ms."""

MOST_NOTED = 1 << 18
"""The most keys noted for a delta, some 50 MB of names: state outside memory may be larger than memory."""

Chunk = tuple[list[Any], list[bytes]]
"""Keys, and the packed value of each."""

Found = tuple[list[Any], list[bytes | None]]
"""Keys, and the packed value of each, None for a deleted key."""


_PANES = 1 << 79
_EARLIEST = -(1 << 63)


def pane_group(pane: int, group: int) -> int:
    """The backend's group for keys in pane `pane` (microseconds) and key group `group`.

    So a range scan reads or deletes one pane. The number is larger than any key group. Its highest bits are the pane, rising with time, and
    its lowest bits the key group.
    """
    return _PANES | (pane - _EARLIEST) << 15 | group


class StateBackend(ABC):
    """Used by one thread. Keys of a call are different from one another. A group is a key group, or a `pane_group`.

    `objects`: the dict of a backend that keeps Python objects by Python keys; its user may read and change it without a call. Other
    backends (None) take keys and values as bytes.
    """

    objects: dict[Any, Any] | None = None

    passes_on = False
    """Whether `pass_on` can hand over groups without moving their state."""

    @abstractmethod
    def get_many(self, groups: Sequence[int], keys: Sequence[Any]) -> list[Any]:
        """Called once a batch, before its records are processed: the value of each key, None where there is none."""

    @abstractmethod
    def put_many(self, groups: Sequence[int], keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Called once a batch, after its records, with the changed values; and with state that arrives from elsewhere."""

    @abstractmethod
    def delete_many(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        """Called once a batch with forgotten keys, and with keys whose state was sent away; some may not exist."""

    @abstractmethod
    def keys_of(self, group: int) -> list[Any]:
        """The keys of a group."""

    def listed(self, group: int) -> list[Any]:
        """Called for each key group that leaves: its keys for `take_many`, perhaps with some that are gone, or twice."""
        return self.keys_of(group)

    def take_many(self, groups: Sequence[int], keys: Sequence[Any]) -> list[Any]:
        """Called with keys whose state is sent away, as `listed` gives them: their values, None where there is none. They are deleted."""
        found = self.get_many(groups, keys)
        self.delete_many(groups, keys)
        return found

    def items_of(self, groups: Sequence[int]) -> Chunk:
        """Called with groups that are read one after the other: all their keys and values."""
        keys, values = list[Any](), list[Any]()
        for group in groups:
            found = self.keys_of(group)
            keys += found
            values += self.get_many([group] * len(found), found)
        return keys, values

    def delete_groups(self, groups: Sequence[int]) -> None:
        """Called with the groups of a pane that no window needs any more; these deletions needn't be noted."""
        for group in groups:
            found = self.keys_of(group)
            self.delete_many([group] * len(found), found)

    @abstractmethod
    def snapshot(self) -> Iterator[Chunk]:
        """Called at a checkpoint's barrier. The chunks are taken one by one between later batches. A new snapshot ends the previous one."""

    _noted: set[Any] | None = None

    def changes(self) -> set[Any] | None:
        """Called at a checkpoint's barrier: the keys written or deleted since the last call, for `delta`; None if they are not known.

        From then on changes are noted.
        """
        noted, self._noted = self._noted, set()
        return noted

    def note(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        """Called with keys that are written, deleted or taken over. With more than `MOST_NOTED`, the changes are no longer known."""
        if self._noted is not None:
            self._noted.update(zip(groups, keys, strict=True))
            if len(self._noted) > MOST_NOTED:
                self._noted = None

    @abstractmethod
    def delta(self, changes: set[Any]) -> Iterator[Found]:
        """As `snapshot`, for the noted keys only."""

    @abstractmethod
    def count(self) -> int:
        """Called about once a second: the number of keys."""

    @abstractmethod
    def nbytes(self) -> int:
        """Called about once a second: an estimate of the state's bytes."""

    def pass_on(self, groups: Sequence[int], target: int) -> Iterator[list[Any]] | None:
        """Called when whole key groups leave for worker `target`. Returns None if their state must be read, sent and deleted.

        Otherwise the state stays in place and belongs to the target at once, and the iterator gives the keys of one group after the other.
        """
        return None

    def take_over(self, groups: Sequence[int]) -> None:
        """Called in the worker that `pass_on` named, with the groups that now belong to it."""
        raise StateBackendError(f"{type(self).__name__} can't take state over without its values")

    @abstractmethod
    def clear(self) -> None:
        """Forget everything."""

    @abstractmethod
    def close(self) -> None:
        """Called once when the worker's task ends, also after an error: close files and connections, and delete their content."""
