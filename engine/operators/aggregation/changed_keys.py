"""The keys of panes that changed since the windows with these panes were last emitted.

It is no state: after a restore or a move all arrived state counts as changed, so a window may be emitted again with the same
result, and none is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...aggregates.partial_aggregates import PartialAggregator

KeyColumns = Sequence[pa.Array] | None
"""The key columns of some keys, None for all keys of a pane."""

_PIECES = 64
"""The number of pieces of a pane's keys that are joined, so that a key in many batches is kept once."""


class ChangedKeys:
    """The changes of keys, numbered by the advance of the watermark before which they arrived."""

    def __init__(self, aggregator: PartialAggregator) -> None:
        self._aggregator = aggregator
        self._changes: dict[int, list[tuple[int, KeyColumns]]] = {}
        self._emitted: dict[int, int] = {}
        self._now = 0

    @property
    def panes(self) -> list[int]:
        """Return the starts of panes with changes."""
        return list(self._changes)

    def note(self, pane: int, keys: KeyColumns) -> None:
        """Note that keys of this pane changed."""
        changes = self._changes.setdefault(pane, [])
        changes.append((self._now, keys))
        if len(changes) >= _PIECES:
            changes[:] = [(self._now, self._distinct([keys for _, keys in changes]))]

    def since_emitted(self, end: int, panes: Sequence[int]) -> KeyColumns:
        """Return the distinct keys of these panes that changed since the window that ends at `end` was emitted.

        Without any it returns no columns.
        """
        emitted = self._emitted.get(end, -1)
        found = [keys for pane in panes for when, keys in self._changes.get(pane, ()) if when > emitted]
        return self._distinct(found) if found else ()

    def emitted(self, end: int) -> None:
        """Note that the window that ends at `end` was emitted with all changes so far."""
        self._emitted[end] = self._now

    def next(self) -> None:
        """Begin a new number: later changes follow the windows that were emitted."""
        self._now += 1

    def forget(self) -> None:
        """Forget all changes, once every window that may be emitted again was emitted."""
        self._changes.clear()
        self._emitted.clear()

    def drop(self, panes: Sequence[int]) -> None:
        """Forget panes that no window needs."""
        for pane in panes:
            self._changes.pop(pane, None)

    def _distinct(self, pieces: Sequence[KeyColumns]) -> KeyColumns:
        some = [keys for keys in pieces if keys is not None]
        return self._aggregator.distinct_keys(some) if len(some) == len(pieces) else None
