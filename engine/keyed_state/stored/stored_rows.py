"""Rows of bytes by key in a backend, for aggregates and `stateful_map_columns`: stored, moved and saved independent of their
content.

A row's key is its key columns. For windows the pane is the last of the columns, and part of the backend's group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....state.backends.base import SNAPSHOT_CHUNK, pane_group
from ....state.backends.opening import open_backend
from ...aggregates.partial_aggregates import PANE
from ...batch import Batch
from ...context import Context
from ...keys.codec import KeyCodec
from ...keys.encoding import KeyTypes, key_groups, key_hashes
from ...protocol.routing import Move
from ...snapshots.chain import replacing
from ...snapshots.changes import Changes, KeyChanges
from ..pane_changes import panes_gone
from .backend_transfer import BackendTransfer

ABOUT = b"evenflow.rows"
"""The schema metadata of a batch that names rows which changed their owner without being sent: the information needed to read
them.
"""

BackendKeys = tuple[list[int], list[bytes]]
"""Groups and keys of the backend."""

ToBatch: TypeAlias = Callable[[list[pa.Array], list[bytes]], Batch]
"""A function that makes a batch of key columns and their rows."""


class StoredRows:
    """The rows of one operator in a backend. `to_batch(columns, rows)` makes batches of rows.

    `about()` describes rows that change their owner without being sent.
    """

    def __init__(
        self,
        context: Context,
        keys: tuple[str, ...],
        to_batch: ToBatch,
        about: Callable[[], bytes] = bytes,
        *,
        paned: bool = False,
    ) -> None:
        self.context, self._paned = context, paned
        self._names = [*keys, PANE] if paned else list(keys)
        self._to_batch, self._about = to_batch, about
        self._types = KeyTypes(context.name, self._names)
        self._codec = KeyCodec(self._types)
        self.backend = open_backend(context.state, context.name, context.index, context.key_groups)
        self._panes: dict[int, set[int]] = {}
        """The key groups that may have keys, by pane."""
        self._forgotten: set[int] | None = None
        """The panes dropped since changes are noted: one row of a delta for each, however many keys it had."""

    @property
    def types(self) -> Sequence[pa.DataType]:
        """The types of the key columns so far, none before the first key."""
        return self._types.types

    @property
    def panes(self) -> Collection[int]:
        """Return the panes that may have keys."""
        return self._panes.keys()

    def places(self, columns: Sequence[pa.Array]) -> BackendKeys:
        """Return the groups and keys of these key columns (and panes).

        Raises RecordError for a key of another type than before.
        """
        self._types.learn(columns)
        return self._groups(columns), self._codec.pack(columns)

    def columns(self, keys: Sequence[bytes]) -> list[pa.Array]:
        """Return the key columns of keys of the backend."""
        return self._codec.columns(keys)

    def get(self, places: BackendKeys) -> list[bytes | None]:
        """Return the rows, None for a key without one."""
        return self.backend.get_many(*places)

    def put(self, places: BackendKeys, rows: Sequence[bytes]) -> None:
        """Write rows, at most one for each key."""
        self.backend.put_many(*places, rows)

    def read(self, panes: Collection[int] = ()) -> Iterator[tuple[list[pa.Array], list[bytes]]]:
        """Yield all rows, or those of these panes, group by group, about SNAPSHOT_CHUNK at a time: key columns and rows."""
        left = sorted(set().union(*(self._panes[pane] for pane in panes))) if self._paned else list(range(self.context.key_groups))
        at_once = 1
        while left:
            some, left = left[:at_once], left[at_once:]
            keys, rows = self.backend.items_of(self._in(panes, some))
            at_once = at_once * 2 if len(keys) < SNAPSHOT_CHUNK else max(1, at_once // 2)
            if keys:
                yield self._codec.columns(keys), rows

    def part(self, part: int, parts: int) -> range:
        """Return the key groups of one of `parts` parts."""
        return range(self.context.key_groups * part // parts, self.context.key_groups * (part + 1) // parts)

    def drop(self, panes: Collection[int]) -> None:
        """Forget the rows of these panes."""
        for pane in panes:
            self.backend.delete_groups([pane_group(pane, group) for group in sorted(self._panes.pop(pane))])
        if self._forgotten is not None:
            self._forgotten.update(panes)

    def snapshot(self) -> Iterator[tuple[list[pa.Array], list[bytes]]]:
        """Return a snapshot of all rows."""
        return ((self._codec.columns(keys), rows) for keys, rows in self.backend.snapshot())

    def changes(self) -> Changes | None:
        """Return the changes since the last call, None if they are not known; from then on changes are noted."""
        noted, forgotten = self.backend.changes(), self._forgotten
        self._forgotten = set()
        return None if noted is None or forgotten is None else KeyChanges(noted, frozenset(forgotten))

    def delta(self, changes: Changes, to_batch: ToBatch) -> Iterator[Batch]:
        """Return the changed rows as they are now, and the deleted ones, in chunks that replace older rows."""
        assert isinstance(changes, KeyChanges)
        found = self.backend.delta(changes.keys)
        there = (batch for keys, rows in found for batch in self._replacing(keys, rows, changes.forgotten, to_batch))
        return there if not changes.forgotten else chain([panes_gone(changes.forgotten)], there)

    def depart(self, move: Move) -> BackendTransfer:
        """Give up the rows of the keys that `move` selects."""
        return BackendTransfer(self, move)

    def forget_groups(self, groups: Collection[int]) -> None:
        """Forget that these key groups may have rows."""
        self._panes = {pane: left for pane, there in self._panes.items() if (left := there.difference(groups))}

    def take_over(self, named: Batch) -> bytes | None:
        """Take over the rows that a batch names because they were not sent.

        Return the sender's `about`, None for another batch.
        """
        about: bytes | None = (named.rows.schema.metadata or {}).get(ABOUT)
        if about is not None:
            places = self.places(named.rows.columns)
            self.backend.take_over(places[0])
            self.backend.note(*places)
        return about

    def backend_groups(self, key_groups: Sequence[int]) -> list[int]:
        return self._in(self._panes, key_groups)

    def hashes(self, keys: Sequence[bytes]) -> npt.NDArray[np.uint64]:
        return key_hashes(self._by_key(self._codec.columns(keys)), self.context.name)

    def take(self, groups: Sequence[int], keys: Sequence[bytes]) -> Batch | None:
        found = self.backend.get_many(groups, keys)
        here = [place for place, row in enumerate(found) if row is not None]
        if not here:
            return None
        groups, keys = [groups[i] for i in here], [keys[i] for i in here]
        self.backend.delete_many(groups, keys)
        return self._to_batch(self._codec.columns(keys), [found[i] for i in here])

    def named(self, keys: Sequence[bytes]) -> Batch:
        return self.naming(self._codec.columns(keys))

    def naming(self, columns: Sequence[pa.Array]) -> Batch:
        """Make a batch for `take_over`."""
        rows = pa.RecordBatch.from_arrays(list(columns), names=self._names)
        return Batch(rows.replace_schema_metadata({ABOUT: self._about()}))

    def introduced(self, keys: Sequence[bytes]) -> Batch | None:
        return self.named(keys[:1])

    def _replacing(
        self,
        keys: Sequence[bytes],
        rows: Sequence[bytes | None],
        forgotten: Collection[int],
        to_batch: ToBatch,
    ) -> Iterator[Batch]:
        there = {key: row for key, row in zip(keys, rows, strict=True) if row is not None}
        if there:
            yield Batch(replacing(to_batch(self._codec.columns(list(there)), list(there.values())).rows, self._names))
        columns = self._codec.columns([key for key, row in zip(keys, rows, strict=True) if row is None])
        gone = pa.RecordBatch.from_arrays(columns, names=self._names)
        if forgotten:
            gone = gone.filter(pc.invert(pc.is_in(gone[PANE], pa.array(forgotten, pa.int64()))))
        if gone.num_rows:
            yield Batch(replacing(gone, self._names))

    def _by_key(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        return list(columns[:-1] if self._paned else columns)

    def _groups(self, columns: Sequence[pa.Array]) -> list[int]:
        """Return the backend's groups; note groups of panes."""
        groups: list[int] = key_groups(self._by_key(columns), self.context.key_groups, self.context.name).tolist()
        if not self._paned:
            return groups
        panes = columns[-1].to_numpy()
        if (panes == panes[0]).all():
            pane = int(panes[0])
            self._panes.setdefault(pane, set()).update(groups)
            begin = pane_group(pane, 0)
            return [begin | group for group in groups]
        for pane, group in zip(panes.tolist(), groups, strict=True):
            self._panes.setdefault(pane, set()).add(group)
        return [pane_group(pane, group) for pane, group in zip(panes.tolist(), groups, strict=True)]

    def _in(self, panes: Collection[int], key_groups: Sequence[int]) -> list[int]:
        """Return the backend's groups of these key groups in these panes."""
        if not self._paned:
            return list(key_groups)
        return [pane_group(pane, group) for pane in sorted(panes) for group in key_groups if group in self._panes[pane]]
