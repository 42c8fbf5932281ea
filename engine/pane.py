"""A pane: the summaries of one stretch of event time, as a log that is combined when it has doubled.

Appending costs nothing per key; combining is vectorised and amortised, so that no Python runs per key. The log-structured
merge is after O'Neil et al., "The log-structured merge-tree" (1996), with one level.
"""

from __future__ import annotations

from .summary import Carry, Summariser, Summary

_SMALLEST = 32_768


class Pane:
    """Holds at most about twice the rows of its distinct keys, plus a constant."""

    def __init__(self) -> None:
        self._log: list[Summary] = []
        self._rows = 0
        self._limit = _SMALLEST

    def append(self, summary: Summary, summariser: Summariser) -> None:
        """Add a summary; its keys may repeat ones that are there."""
        self._log.append(summary)
        self._rows += len(summary)
        if self._rows > self._limit:
            self._rows = len(self.combined(summariser))
            self._limit = max(_SMALLEST, 2 * self._rows)

    def combined(self, summariser: Summariser) -> Summary:
        """Everything in it, every key once."""
        self._log = [summariser.combine(self._log)]
        return self._log[0]

    def replace(self, summary: Summary) -> None:
        """Hold this alone from now on, every key once."""
        self._log, self._rows = [summary], len(summary)

    def carry(self, carry: Carry) -> None:
        """Hold the same in a new binding."""
        self._log = [carry(summary) for summary in self._log]

    def __len__(self) -> int:
        return self._rows

    @property
    def log(self) -> list[Summary]:
        """The summaries as they lie, keys may repeat."""
        return self._log

    def nbytes(self, summariser: Summariser) -> int:
        """Estimate of its bytes."""
        return sum(summariser.nbytes(summary) for summary in self._log)
