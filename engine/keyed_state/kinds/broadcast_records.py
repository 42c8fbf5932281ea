"""The state of `process` with a broadcast stream: the records of keys, and the worker's copy of the stream's rows.

The copy belongs to no key. It is in every worker's snapshots, and a worker that hands keys over gives it to those that may have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ...batch import Batch
from ...broadcast_rows import is_broadcast
from ...context import Context
from ...snapshots.changes import Changes
from ...state_description import PartsChange
from ...typed_states.value_types import ValueType
from .broadcast_copy import BroadcastCopy
from .migration import Migration
from .records import StateRecords


@dataclass(frozen=True, slots=True)
class CopyChanges(Changes):
    """The changes of the records, and the number of the copy's rows if these must be saved, None otherwise."""

    records: Changes
    rows: int | None

    def __len__(self) -> int:
        return len(self.records) + (self.rows or 0)

    def behind(self, earlier: CopyChanges) -> CopyChanges:
        return CopyChanges(self.records.behind(earlier.records), earlier.rows if self.rows is None else self.rows)


class BroadcastRecords(StateRecords):
    """The records of keys, and `copy`, the copy of the broadcast stream."""

    def __init__(
        self,
        context: Context,
        keys: tuple[str, ...],
        lives: Mapping[str, int],
        types: Mapping[str, ValueType],
        copy: BroadcastCopy,
        *,
        undoable: bool,
        migration: Migration | None = None,
    ) -> None:
        super().__init__(context, keys, lives, types, undoable=undoable, migration=migration)
        self.copy = copy

    def install(self, chunk: Batch) -> None:
        if is_broadcast(chunk.rows.schema):
            self.copy.install(chunk.rows)
        else:
            super().install(chunk)

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        return chunk if is_broadcast(chunk.rows.schema) else super().adapted(chunk, change)

    def await_copy(self) -> None:
        self.copy.here = False

    def copies(self) -> Sequence[Batch]:
        return self.copy.chunks()

    def snapshot(self) -> Iterator[Batch]:
        return chain(self.copy.chunks(), super().snapshot())

    def changes(self) -> Changes | None:
        records, changed = super().changes(), self.copy.changed
        self.copy.changed = False
        return None if records is None else CopyChanges(records, len(self.copy) if changed else None)

    def delta(self, changes: Changes) -> Iterator[Batch]:
        assert isinstance(changes, CopyChanges)
        replaced = () if changes.rows is None else list(self.copy.replaced())
        return chain(replaced, super().delta(changes.records))
