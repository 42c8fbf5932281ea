"""The fixed cost of a batch, apart from the cost of each of its rows.

A worker that has little to do gets its records in small batches, so the fixed cost makes each record look expensive. A busy
worker receives larger batches. A rate measured on an idle worker therefore underestimates its capacity, and DS2 would keep too
many workers. A straight line through the batches, by least squares, separates the two:

    seconds of a batch = fixed + each * rows

Invariant: without clear evidence `fixed` is 0. As `each` counts what it may be at most, `ERRORS` standard errors above the
estimate, so batches that all have the same number of rows, or too few batches, show nothing.

>>> costs = BatchCosts()
>>> for rows in (1, 2, 3, 1, 4):
...     costs += BatchCosts.of(rows, seconds=0.5 + 0.25 * rows)
>>> round(costs.fixed, 6), costs.batches
(0.5, 5)
>>> sum([BatchCosts.of(7, 0.5)] * 5, BatchCosts()).fixed
0.0
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

ERRORS = 3.0
"""Standard errors by which an estimate may be wrong."""

MOST = 0.5
"""The largest part of a mean batch's time that counts as fixed: an estimate from tiny batches must not promise any rate, and
DS2's correction can make up for half.
"""

FEWEST = 3
"""Batches below which a line has no error that could be estimated."""


class BatchCosts(NamedTuple):
    """Sums over `batches`: of their rows, their seconds of useful time, the squares and the products of both."""

    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    rows_squared: float = 0.0
    seconds_squared: float = 0.0
    row_seconds: float = 0.0

    @classmethod
    def of(cls, rows: int, seconds: float) -> BatchCosts:
        """Return the costs of one batch."""
        return cls(1, rows, seconds, float(rows * rows), seconds * seconds, rows * seconds)

    def __add__(self, other: BatchCosts) -> BatchCosts:  # type: ignore[override]  # these are sums, and add up as such
        return BatchCosts(
            self.batches + other.batches,
            self.rows + other.rows,
            self.seconds + other.seconds,
            self.rows_squared + other.rows_squared,
            self.seconds_squared + other.seconds_squared,
            self.row_seconds + other.row_seconds,
        )

    def in_part(self, part: float) -> BatchCosts:
        """Return the costs of the same batches, each with this part of its seconds."""
        return self._replace(
            seconds=self.seconds * part, seconds_squared=self.seconds_squared * part * part, row_seconds=self.row_seconds * part
        )

    @property
    def fixed(self) -> float:
        """Seconds that a batch costs at least, whatever its rows are."""
        line = self._line()
        if line is None:
            return 0.0
        mean_seconds = self.seconds / self.batches
        most = max(0.0, line.each + ERRORS * line.error)
        return min(max(0.0, mean_seconds - most * self.rows / self.batches), MOST * mean_seconds)

    def at_most(self, rows: float) -> float:
        """Seconds that a batch of this many rows would have cost at most; there is at least one batch.

        A smaller batch costs no more than a mean one, and less only by clear evidence, down to its share by rows. A larger one
        costs at most in proportion.

        >>> costs = sum([BatchCosts.of(rows, 0.5 + 0.25 * rows) for rows in (10, 20, 30, 40)], BatchCosts())
        >>> round(costs.at_most(2), 6), costs.at_most(50), BatchCosts.of(10, 1.0).at_most(1)
        (1.0, 13.5, 1.0)
        """
        mean_rows, mean_seconds = self.rows / self.batches, self.seconds / self.batches
        proportional = mean_seconds * rows / mean_rows
        if rows >= mean_rows:
            return proportional
        line = self._line()
        least = 0.0 if line is None else max(0.0, line.each - ERRORS * line.error)
        return max(proportional, mean_seconds - least * (mean_rows - rows))

    @property
    def mean_at_least(self) -> float:
        """Seconds of a batch of mean size, at least: the mean less `ERRORS` standard errors. Needs one batch or more.

        One slow batch among a few shows nothing; many do.

        >>> slow = [BatchCosts.of(10, 1.0), *[BatchCosts.of(10, 0.1)] * 9]
        >>> sum(slow, BatchCosts()).mean_at_least, round(sum(slow[:1] * 50 + slow[1:2] * 50, BatchCosts()).mean_at_least, 2)
        (0.0, 0.41)
        """
        mean = self.seconds / self.batches
        if self.batches < FEWEST:
            return 0.0
        line = self._line()
        scatter = max(0.0, self.seconds_squared - self.seconds * mean) / (self.batches - 1) if line is None else line.scatter
        return max(0.0, mean - ERRORS * sqrt(scatter / self.batches))

    def _line(self) -> _Line | None:
        """Fit the line; None without evidence."""
        if self.batches < FEWEST:
            return None
        mean_rows, mean_seconds = self.rows / self.batches, self.seconds / self.batches
        spread = self.rows_squared - self.rows * mean_rows
        if spread <= 1e-9 * self.rows_squared:
            return None
        together = self.row_seconds - self.rows * mean_seconds
        each = together / spread
        scatter = max(0.0, self.seconds_squared - self.seconds * mean_seconds - each * together) / (self.batches - 2)
        return _Line(each, sqrt(scatter / spread), scatter)


class _Line(NamedTuple):
    """A fitted line: the seconds of `each` row, the standard `error` of that, and the variance of batches around the line."""

    each: float
    error: float
    scatter: float
