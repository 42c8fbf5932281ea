"""Lists of values in numbered slots, for state in memory: a write costs as much as the lists written, not as all there are.

Lists that are written together are stored in one generation. A slot knows its generation and its offset there. Generations are
merged when there are a few of similar length, as in a log-structured merge-tree, and rewritten when more than half of their
values were replaced.

>>> slots = RaggedSlots(pa.int64(), 3)
>>> slots[np.array([0, 2])] = Ragged.of(pa.array([1, 2, 3]), np.array([2, 1]))
>>> slots[np.array([2, 1, 0])].to_arrow().to_pylist()
[[3], [], [1, 2]]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.ragged import Ragged, stretches

Ints = npt.NDArray[np.int64]

_SMALLEST = 1_024
"""The number of values up to which a generation counts as short; there are few of those at any time."""

_ALIKE = 4
"""The number of generations of similar length that are merged."""

_MOST_DEAD = 1.25
"""The most values per live value of a generation that is copied as a unit."""


class RaggedSlots:
    """A mutable part of an aggregate's state. Slots without a list have an empty one."""

    def __init__(self, kind: pa.DataType, slots: int) -> None:
        self._kind = kind
        self._generations: dict[int, pa.Array] = {}
        self._live: dict[int, int] = {}
        self._written: dict[int, Ints] = {}
        """The slots of each generation's lists; some may be in another generation by now."""
        self._next = 0
        self._of = np.full(slots, -1, np.int64)
        self._starts = np.zeros(slots, np.int64)
        self._counts = np.zeros(slots, np.int64)

    def __len__(self) -> int:
        return len(self._of)

    @property
    def nbytes(self) -> int:
        written = sum(slots.nbytes for slots in self._written.values())
        return sum(int(values.nbytes) for values in self._generations.values()) + written + 24 * len(self)

    def grow(self, more: int) -> None:
        """Add empty slots."""
        self._of = np.concatenate([self._of, np.full(more, -1, np.int64)])
        self._starts = np.concatenate([self._starts, np.zeros(more, np.int64)])
        self._counts = np.concatenate([self._counts, np.zeros(more, np.int64)])

    def __getitem__(self, slots: Ints) -> Ragged:
        """Return the lists in these slots."""
        of, starts, counts = self._of[slots], self._starts[slots], self._counts[slots]
        used = np.unique(of[counts > 0]).tolist()
        if len(used) == 1:
            return Ragged.of(self._generations[used[0]].take(pa.array(stretches(starts, counts))), counts)
        pieces, base, bases = [pa.nulls(0, self._kind)], 0, np.zeros(len(of), np.int64)
        for generation in used:
            here = (of == generation) & (counts > 0)
            pieces.append(self._generations[generation].take(pa.array(stretches(starts[here], counts[here]))))
            bases[here] = base + np.cumsum(counts[here]) - counts[here]
            base += len(pieces[-1])
        return Ragged.of(pa.concat_arrays(pieces).take(pa.array(stretches(bases, counts))), counts)

    def __setitem__(self, slots: Ints, lists: Ragged) -> None:
        """Put lists into distinct slots."""
        self._release(slots)
        self._write(slots, lists)
        self._tidy()

    def clear(self, slots: Ints) -> None:
        """Make these distinct slots empty."""
        self._release(slots)
        self._counts[slots] = 0

    def _release(self, slots: Ints) -> None:
        of, counts = self._of[slots], self._counts[slots]
        for generation in np.unique(of[counts > 0]).tolist():
            self._live[generation] -= int(counts[of == generation].sum())
            if not self._live[generation]:
                del self._live[generation], self._generations[generation], self._written[generation]

    def _write(self, slots: Ints, lists: Ragged) -> None:
        self._of[slots], self._starts[slots], self._counts[slots] = self._next, lists.offsets[:-1], lists.counts
        if len(lists.values):
            self._generations[self._next], self._live[self._next] = lists.values, len(lists.values)
            self._written[self._next] = slots
        self._next += 1

    def _tidy(self) -> None:
        """Rewrite generations of similar length into one, and those that are mostly garbage."""
        while len(self._live) >= _ALIKE:
            shortest = sorted(self._live, key=self._live.__getitem__)[:_ALIKE]
            if self._live[shortest[-1]] > 2 * max(self._live[shortest[0]], _SMALLEST):
                break
            self._rewrite(shortest)
        sparse = [generation for generation, live in self._live.items() if len(self._generations[generation]) > 2 * live + _SMALLEST]
        if sparse:
            self._rewrite(sparse)

    def _rewrite(self, generations: list[int]) -> None:
        """Join generations into one, without replaced values.

        One that has few of them is copied as a unit, many times as fast.
        """
        pieces, written, base, lived = list[pa.Array](), list[Ints](), 0, 0
        for generation in generations:
            slots = self._written.pop(generation)
            slots = slots[(self._of[slots] == generation) & (self._counts[slots] > 0)]
            values, starts, counts = self._generations.pop(generation), self._starts[slots], self._counts[slots]
            live = self._live.pop(generation)
            lived += live
            if len(values) > _MOST_DEAD * live:
                values, starts = values.take(pa.array(stretches(starts, counts))), np.cumsum(counts) - counts
            self._of[slots], self._starts[slots] = self._next, base + starts
            pieces.append(values)
            written.append(slots)
            base += len(values)
        self._generations[self._next], self._live[self._next] = pa.concat_arrays(pieces), lived
        self._written[self._next] = np.concatenate(written)
        self._next += 1
