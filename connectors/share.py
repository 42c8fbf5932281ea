"""Shares: the numbers of a numbered stream (its items, rows or splits) that a reader has yet to emit.

A share is a *tail*, an endless progression, and *pieces*, finite progressions before it. Initially reader `index` of
`parallelism` has just the tail `index, index + parallelism, ...`; only the reader knows where the stream ends. After a
reassignment, shares are regular again beyond the number that the furthest reader has reached; the remaining numbers before it
become pieces.

Invariant: the shares of all readers of a source are disjoint, and together contain exactly the numbers not yet emitted. All
pieces of a share come before its tail.

>>> ahead, behind = Share.of(0, 2).since(6), Share.of(1, 2).since(2)
>>> three = share_out([ahead, behind], 3, "read")
>>> [share.below(12).tolist() for share in three]
[[3, 6, 9], [5, 7, 10], [8, 11]]
>>> three[0] == Share.decode(three[0].encode())
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .positions import check_all_readers

ENDLESS = 1 << 62
"""A bound above every number."""


@dataclass(frozen=True, slots=True)
class Share:
    """The numbers of one reader: those of `tail`, which is endless, and those of `pieces`; no number is in two of them."""

    tail: range
    pieces: tuple[range, ...] = ()

    @classmethod
    def of(cls, index: int, parallelism: int) -> Share:
        """Return the initial share of reader `index` of `parallelism`."""
        return cls(range(index, ENDLESS, parallelism))

    def __contains__(self, number: int) -> bool:
        return number in self.tail or any(number in piece for piece in self.pieces)

    @property
    def first(self) -> range:
        """The progression that begins with the lowest number."""
        return min(self.pieces, default=self.tail, key=lambda piece: piece.start)

    @property
    def lowest(self) -> int:
        return self.first.start

    def without_first(self, count: int) -> Share:
        """Return the share without the first `count` numbers (at most all) of `first`."""
        first = self.first
        rest = range(first.start + count * first.step, first.stop, first.step)
        if first is self.tail:
            return Share(rest)
        return Share(self.tail, tuple(piece for old in self.pieces if (piece := rest if old is first else old)))

    def since(self, number: int) -> Share:
        """Return the numbers from `number` on."""
        return Share(_since(self.tail, number), tuple(piece for old in self.pieces if (piece := _since(old, number))))

    def below(self, number: int) -> npt.NDArray[np.int64]:
        """Return the numbers below `number`, ascending."""
        return np.sort(np.concatenate([np.arange(r.start, min(r.stop, number), r.step) for r in (self.tail, *self.pieces)]))

    def encode(self) -> list[Any]:
        """Return lists of integers, for a position."""
        return [self.tail.start, self.tail.step, [[piece.start, piece.stop, piece.step] for piece in self.pieces]]

    @classmethod
    def decode(cls, encoded: Sequence[Any]) -> Share:
        start, step, pieces = encoded
        return cls(range(start, ENDLESS, step), tuple(range(*piece) for piece in pieces))


def share_out(shares: Sequence[Share], parallelism: int, operator: str) -> list[Share]:
    """Redistribute the same numbers to `parallelism` shares: tails by `number % parallelism`, and pieces of numbers as equal as
    possible.

    Raises FlowError if `shares` are not those of all readers.
    """
    check_all_readers(((share.tail.start % len(shares), share.tail.step) for share in shares), operator)
    regular = max(share.tail.start for share in shares)
    pieces = [piece for share in shares for piece in (*share.pieces, range(share.tail.start, regular, share.tail.step)) if piece]
    return [Share(_since(range(i, ENDLESS, parallelism), regular), dealt) for i, dealt in enumerate(_deal(pieces, parallelism))]


def _deal(pieces: Iterable[range], parallelism: int) -> list[tuple[range, ...]]:
    """Concatenate the pieces and cut them into `parallelism` runs of equal length. This adds few pieces, however often it is
    repeated.

    McNaughton's wrap-around rule (Scheduling with deadlines and loss functions, Management Science 1959).
    """
    ordered = sorted(pieces, key=lambda piece: piece.start)
    length = -(-sum(map(len, ordered)) // parallelism)
    dealt: list[list[range]] = [[]]
    room = length
    for piece in ordered:
        rest = piece
        while rest:
            if not room:
                dealt.append([])
                room = length
            dealt[-1].append(rest[:room])
            room, rest = room - len(dealt[-1][-1]), rest[room:]
    return [*map(tuple, dealt), *[()] * (parallelism - len(dealt))]


def _since(numbers: range, number: int) -> range:
    behind = max(0, number - numbers.start)
    return range(numbers.start + -(-behind // numbers.step) * numbers.step, numbers.stop, numbers.step)
