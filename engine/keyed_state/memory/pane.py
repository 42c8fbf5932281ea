"""A pane in memory: partial aggregates as logs, which are combined when they have doubled.

Appending costs nothing per key; combining is vectorised and amortised, so that no Python runs per key. The log-structured merge
is after O'Neil et al., "The log-structured merge-tree" (1996), with one level; noted changes are a second level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...aggregates.partial_aggregates import Carry, PartialAggregates, PartialAggregator

PartialSplit: TypeAlias = Callable[[PartialAggregates], tuple[PartialAggregates, PartialAggregates]]
"""Splits partial aggregates into those that leave and those that stay."""

_SMALLEST = 32_768


class Log:
    """A log of partial aggregates, at most about twice the rows of its distinct keys, plus a constant."""

    def __init__(self) -> None:
        self.partials: list[PartialAggregates] = []
        self._rows = 0
        self._limit = _SMALLEST

    def append(self, partial: PartialAggregates, aggregator: PartialAggregator) -> None:
        """Add partial aggregates; keys may repeat."""
        self.partials.append(partial)
        self._rows += len(partial)
        if self._rows > self._limit:
            self._rows = len(self.combined(aggregator))
            self._limit = max(_SMALLEST, 2 * self._rows)

    def combined(self, aggregator: PartialAggregator) -> PartialAggregates:
        """Return all of it, every key once."""
        self.partials = [aggregator.combine(self.partials)]
        return self.partials[0]

    def replace(self, partial: PartialAggregates) -> None:
        """Replace the content by this, which has every key once."""
        self.partials, self._rows = [partial], len(partial)

    def carry(self, carry: Carry) -> None:
        """Convert the content to a new binding."""
        self.partials = [carry(partial) for partial in self.partials]

    def __len__(self) -> int:
        return self._rows


class Pane:
    """The rows since the last `settle`, and all earlier ones (none if `settle` is never called), in a log each."""

    def __init__(self) -> None:
        self._settled, self._fresh = Log(), Log()

    def append(self, partial: PartialAggregates, aggregator: PartialAggregator) -> None:
        """Add partial aggregates; their keys may repeat existing ones."""
        self._fresh.append(partial, aggregator)

    def combined(self, aggregator: PartialAggregator) -> PartialAggregates:
        """Return all rows, every key once."""
        return aggregator.combine(self.log) if len(self._settled) else self._fresh.combined(aggregator)

    def settle(self, aggregator: PartialAggregator) -> tuple[PartialAggregates, ...]:
        """Return the rows since the last call; keys may repeat."""
        fresh, self._fresh = tuple(self._fresh.partials), Log()
        for partial in fresh:
            self._settled.append(partial, aggregator)
        return fresh

    def cut_out(self, split: PartialSplit, aggregator: PartialAggregator) -> tuple[PartialAggregates | None, PartialAggregates | None]:
        """Remove and return the rows that `split` selects, of the settled and of the newer ones; None for no rows."""
        return _cut_out(self._settled, split, aggregator), _cut_out(self._fresh, split, aggregator)

    def carry(self, carry: Carry) -> None:
        """Convert the content to a new binding."""
        self._settled.carry(carry)
        self._fresh.carry(carry)

    def __len__(self) -> int:
        return len(self._settled) + len(self._fresh)

    @property
    def settled(self) -> bool:
        """True if some of its rows are settled."""
        return len(self._settled) > 0

    @property
    def log(self) -> list[PartialAggregates]:
        """Return the pieces as stored; keys may repeat."""
        return [*self._settled.partials, *self._fresh.partials]

    def nbytes(self, aggregator: PartialAggregator) -> int:
        """Return an estimate of its bytes."""
        return sum(aggregator.nbytes(partial) for partial in self.log)


def _cut_out(log: Log, split: PartialSplit, aggregator: PartialAggregator) -> PartialAggregates | None:
    if not len(log):
        return None
    leaving, staying = split(log.combined(aggregator))
    if not len(leaving):
        return None
    log.replace(staying)
    return leaving
