"""The aggregates of the API: `ef.count()`, `ef.sum("delay")`, ...

All ignore nulls, as in SQL, and all but the counts are null for a group without values. All are associative and commutative, so a combiner
can aggregate before the exchange.

>>> sum("delay"), approx_quantile("delay", 0.99)
(Sum(column='delay'), ApproxQuantile(column='delay', q=0.99, relative_error=0.01))
"""

from __future__ import annotations

from .base import AggregateFunction
from .column import checked_fraction, column_name
from .count import Count
from .distinct import ApproxDistinct
from .extremes import Extreme
from .numeric import Mean, Sum
from .ordered import Ordered
from .quantile import ApproxQuantile


def count(column: str | None = None) -> AggregateFunction:
    """The number of rows, or of non-null values in `column`; int64, never null."""
    return Count(None if column is None else column_name("count", column))


def sum(column: str) -> AggregateFunction:  # noqa: A001 -- used as `ef.sum`, as in SQL
    """The sum: int64 of integers (exact; an error if it doesn't fit), float64 of floats, exact of decimals and durations."""
    return Sum(column_name("sum", column))


def mean(column: str) -> AggregateFunction:
    """The mean of integers, floats or decimals; float64."""
    return Mean(column_name("mean", column))


def min(column: str) -> AggregateFunction:  # noqa: A001 -- used as `ef.min`, as in SQL
    """The smallest value, in the column's type; NaN is larger than any number."""
    return Extreme(column_name("min", column), largest=False)


def max(column: str) -> AggregateFunction:  # noqa: A001 -- used as `ef.max`, as in SQL
    """The largest value, in the column's type; NaN is larger than any number."""
    return Extreme(column_name("max", column), largest=True)


def first(column: str) -> AggregateFunction:
    """The value with the earliest event time, the smallest of several; without event time the one that arrived first."""
    return Ordered(column_name("first", column), last=False)


def last(column: str) -> AggregateFunction:
    """The value with the latest event time, the largest of several; without event time the one that arrived last."""
    return Ordered(column_name("last", column), last=True)


def approx_distinct(column: str, relative_error: float = 0.02) -> AggregateFunction:
    """The approximate number of distinct values, int64: exact for few values, then with a standard error of at most `relative_error`.

    Takes 2**ceil(2 * log2(1.04 / relative_error)) bytes a group at most: 4,096 at 2 %. Raises FlowError for an error outside
    0.005 to 0.25.
    """
    relative_error = checked_fraction("approx_distinct", "relative_error", relative_error, 0.005, 0.25)
    return ApproxDistinct(column_name("approx_distinct", column), relative_error)


def approx_quantile(column: str, q: float, relative_error: float = 0.01) -> AggregateFunction:
    """The approximate `q`-quantile (0.5 is the median), float64, with a relative error of at most `relative_error`.

    Raises FlowError for a `q` outside 0 to 1 or an error outside 0.0001 to 0.5.
    """
    q = checked_fraction("approx_quantile", "q", q, 0, 1)
    relative_error = checked_fraction("approx_quantile", "relative_error", relative_error, 0.0001, 0.5)
    return ApproxQuantile(column_name("approx_quantile", column), q, relative_error)
