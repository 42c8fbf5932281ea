"""A pane: the summaries of one stretch of event time, as logs that are combined when they have doubled.

Appending costs nothing per key; combining is vectorised and amortised, so that no Python runs per key. The log-structured
merge is after O'Neil et al., "The log-structured merge-tree" (1996), with one level; where it is noted what comes, that is a level above.
"""

from __future__ import annotations

from collections.abc import Callable

from .summary import Carry, Summariser, Summary

_SMALLEST = 32_768


class Log:
    """Holds at most about twice the rows of its distinct keys, plus a constant."""

    def __init__(self) -> None:
        self.summaries: list[Summary] = []
        self._rows = 0
        self._limit = _SMALLEST

    def append(self, summary: Summary, summariser: Summariser) -> None:
        """Add a summary; its keys may repeat ones that are there."""
        self.summaries.append(summary)
        self._rows += len(summary)
        if self._rows > self._limit:
            self._rows = len(self.combined(summariser))
            self._limit = max(_SMALLEST, 2 * self._rows)

    def combined(self, summariser: Summariser) -> Summary:
        """Everything in it, every key once."""
        self.summaries = [summariser.combine(self.summaries)]
        return self.summaries[0]

    def replace(self, summary: Summary) -> None:
        """Hold this alone from now on, every key once."""
        self.summaries, self._rows = [summary], len(summary)

    def carry(self, carry: Carry) -> None:
        """Hold the same in a new binding."""
        self.summaries = [carry(summary) for summary in self.summaries]

    def __len__(self) -> int:
        return self._rows


class Pane:
    """Two logs: what has come since `settle` was called, and all before that; if it never is, there is nothing before."""

    def __init__(self) -> None:
        self._settled, self._fresh = Log(), Log()

    def append(self, summary: Summary, summariser: Summariser) -> None:
        """Add a summary; its keys may repeat ones that are there."""
        self._fresh.append(summary, summariser)

    def combined(self, summariser: Summariser) -> Summary:
        """Everything in it, every key once."""
        return summariser.combine(self.log) if len(self._settled) else self._fresh.combined(summariser)

    def settle(self, summariser: Summariser) -> tuple[Summary, ...]:
        """What has come since the last call, in which keys may repeat."""
        fresh, self._fresh = tuple(self._fresh.summaries), Log()
        for summary in fresh:
            self._settled.append(summary, summariser)
        return fresh

    def cut_out(self, split: Callable[[Summary], tuple[Summary, Summary]], summariser: Summariser) -> tuple[Summary | None, Summary | None]:
        """Take out the first part that `split` makes of a summary: of what was settled, and of what has come since; None for no rows."""
        return _cut_out(self._settled, split, summariser), _cut_out(self._fresh, split, summariser)

    def carry(self, carry: Carry) -> None:
        """Hold the same in a new binding."""
        self._settled.carry(carry)
        self._fresh.carry(carry)

    def __len__(self) -> int:
        return len(self._settled) + len(self._fresh)

    @property
    def settled(self) -> bool:
        """Whether anything in it was there when `settle` was called."""
        return len(self._settled) > 0

    @property
    def log(self) -> list[Summary]:
        """The summaries as they lie, keys may repeat."""
        return [*self._settled.summaries, *self._fresh.summaries]

    def nbytes(self, summariser: Summariser) -> int:
        """Estimate of its bytes."""
        return sum(summariser.nbytes(summary) for summary in self.log)


def _cut_out(log: Log, split: Callable[[Summary], tuple[Summary, Summary]], summariser: Summariser) -> Summary | None:
    if not len(log):
        return None
    leaving, staying = split(log.combined(summariser))
    if not len(leaving):
        return None
    log.replace(staying)
    return leaving
