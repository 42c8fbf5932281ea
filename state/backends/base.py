"""What a state backend is: the keyed state of one operator in one worker, by key group and key, read and written by batch.

Invariant: what one call wrote, the next one reads; a snapshot shows what was there when it was taken, whatever is written meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import StateBackendError

SNAPSHOT_CHUNK = 2_048
"""Keys of a snapshot's chunk: it delays the batches behind it by 1 to 2 ms."""

MOST_NOTED = 1 << 18
"""Keys whose changes are noted for a delta, some 50 MB of names: state that lies elsewhere may be larger than memory."""

Chunk = tuple[list[Any], list[bytes]]
"""Keys, and the packed value of each."""

Found = tuple[list[Any], list[bytes | None]]
"""Keys, and the packed value of each, None where there is none any more."""


_PANES = 1 << 79
_EARLIEST = -(1 << 63)


def pane_group(pane: int, group: int) -> int:
    """What a backend takes as the group of the keys that are in pane `pane` (microseconds) and in key group `group`.

    So a pane is read, and forgotten, by itself. No key group is as large; panes rise with their time, and within one the groups rise:
    its lowest bits are the key group.
    """
    return _PANES | (pane - _EARLIEST) << 15 | group


class StateBackend(ABC):
    """Used by one thread. Keys of a call are different from one another. A group is a key group, or a `pane_group`.

    `objects`: where a backend keeps Python objects by Python keys, the dict itself, which its user may read and change without a call. The
    others (None) take keys and values as bytes.
    """

    objects: dict[Any, Any] | None = None

    passes_on = False
    """Whether `pass_on` lets state stay where it is."""

    @abstractmethod
    def get_many(self, groups: Sequence[int], keys: Sequence[Any]) -> list[Any]:
        """Called once a batch, before its records are processed: the value of each key, None where there is none."""

    @abstractmethod
    def put_many(self, groups: Sequence[int], keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Called once a batch, after its records, with what they changed; and with state that comes from elsewhere."""

    @abstractmethod
    def delete_many(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        """Called once a batch with the keys that were forgotten, and with those whose state has been given away; some may not be there."""

    @abstractmethod
    def keys_of(self, group: int) -> list[Any]:
        """Called for each key group that is given away: the keys in it."""

    def items_of(self, groups: Sequence[int]) -> Chunk:
        """Called with groups that are read one after the other: all that is in them."""
        keys, values = list[Any](), list[Any]()
        for group in groups:
            found = self.keys_of(group)
            keys += found
            values += self.get_many([group] * len(found), found)
        return keys, values

    def delete_groups(self, groups: Sequence[int]) -> None:
        """Called with the groups of a pane that no window needs any more; that they are gone needn't be noted."""
        for group in groups:
            found = self.keys_of(group)
            self.delete_many([group] * len(found), found)

    @abstractmethod
    def snapshot(self) -> Iterator[Chunk]:
        """Called at a checkpoint's barrier; the chunks are taken one by one between later batches. A snapshot ends the one before it."""

    _noted: set[Any] | None = None

    def changes(self) -> set[Any] | None:
        """Called at a checkpoint's barrier: what has been written or deleted since the last call, for `delta`; None if that isn't known.

        From now on it is noted.
        """
        noted, self._noted = self._noted, set()
        return noted

    def note(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        """Called with keys of which something is written, deleted or taken over; with too many of them it is no longer known which."""
        if self._noted is not None:
            self._noted.update(zip(groups, keys, strict=True))
            if len(self._noted) > MOST_NOTED:
                self._noted = None

    @abstractmethod
    def delta(self, changes: set[Any]) -> Iterator[Found]:
        """As `snapshot`, of what was noted alone."""

    @abstractmethod
    def count(self) -> int:
        """Called about once a second: the number of keys."""

    @abstractmethod
    def nbytes(self) -> int:
        """Called about once a second: an estimate of the bytes that the state takes."""

    def pass_on(self, groups: Sequence[int], target: int) -> Iterator[list[Any]] | None:
        """Called when whole key groups leave for worker `target`. None: their state must be read, sent and deleted.

        Otherwise it stays where it is and is the target's at once, and the iterator tells the keys of one group after the other.
        """
        return None

    def take_over(self, groups: Sequence[int]) -> None:
        """Called in the worker that `pass_on` named, with groups in which keys have become its own."""
        raise StateBackendError(f"{type(self).__name__} can't take state over without its values")

    @abstractmethod
    def clear(self) -> None:
        """Forget everything."""

    @abstractmethod
    def close(self) -> None:
        """Called once when the worker's task ends, also after an error: let go of files and connections, and of what lies in them."""
