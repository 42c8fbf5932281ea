"""The aggregates of the API: `ef.count()`, `ef.sum("delay")`, ...

All ignore nulls, as in SQL, and all but the counts are null for a group without values. All are associative and commutative, so
a combiner can aggregate before the exchange.

Each takes `where`: an Arrow expression, or the name of a column of booleans. It then aggregates only the rows for which that is
true; null counts as false.

>>> sum("delay"), approx_quantile("delay", 0.99)
(Sum(column='delay'), ApproxQuantile(column='delay', q=0.99, relative_error=0.01))
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base import AggregateFunction
from ..column import checked_fraction, column_name
from ..filtered import Condition, filtered
from ..lists.collect import Collect
from ..lists.count_distinct import CountDistinct
from ..lists.exact_quantile import Quantile
from ..lists.ordered import Ordered
from ..lists.top import By, ByExtreme, top_of
from ..numbers.count import Count
from ..numbers.extremes import Extreme
from ..numbers.numeric import Mean, Sum
from ..numbers.variance import Variance
from ..sketches.distinct import ApproxDistinct
from ..sketches.quantile import ApproxQuantile


def count(column: str | None = None, *, where: Condition | None = None) -> AggregateFunction:
    """Count the rows, or the non-null values in `column`; int64, never null."""
    return filtered(Count(None if column is None else column_name("count", column)), where)


def sum(column: str, *, where: Condition | None = None) -> AggregateFunction:  # noqa: A001 -- used as `ef.sum`, as in SQL
    """Sum the values: int64 for integers (exact; an error if it doesn't fit), float64 for floats, exact for decimals and
    durations.
    """
    return filtered(Sum(column_name("sum", column)), where)


def mean(column: str, *, where: Condition | None = None) -> AggregateFunction:
    """Compute the mean of integers, floats or decimals; float64."""
    return filtered(Mean(column_name("mean", column)), where)


def variance(column: str, *, where: Condition | None = None) -> AggregateFunction:
    """Compute the sample variance (SQL's `var_samp`) of integers, floats or decimals; float64, null for fewer than two values.

    It uses exact sums, so it doesn't depend on the order of the values, nor lose digits when they are far from zero. A group
    keeps 56 bytes for integers, 104 for decimals, and for floats about 80 bytes for each power of two among its values.
    """
    return filtered(Variance(column_name("variance", column), root=False), where)


def stddev(column: str, *, where: Condition | None = None) -> AggregateFunction:
    """Compute the sample standard deviation (SQL's `stddev_samp`): the square root of `variance`.

    >>> import evenflow as ef
    >>> import pyarrow.compute as pc
    >>> flow, out = ef.Dataflow("spread"), []
    >>> rows = flow.read(ef.from_items([{"k": 1, "x": x} for x in (2, 4, 4, 4, 5, 5, 7, 9)]))
    >>> spread = {"variance": ef.variance("x"), "stddev": ef.stddev("x", where=pc.field("x") < 5)}
    >>> _ = rows.key_by("k").aggregate(emit="final", **spread).write(ef.to_list(out))
    >>> _ = flow.run(runtime="local").wait()
    >>> out
    [{'k': 1, 'variance': 4.571428571428571, 'stddev': 1.0}]
    """
    return filtered(Variance(column_name("stddev", column), root=True), where)


def min(column: str, *, where: Condition | None = None) -> AggregateFunction:  # noqa: A001 -- used as `ef.min`, as in SQL
    """Take the smallest value, in the column's type; NaN is larger than any number."""
    return filtered(Extreme(column_name("min", column), largest=False), where)


def max(column: str, *, where: Condition | None = None) -> AggregateFunction:  # noqa: A001 -- used as `ef.max`, as in SQL
    """Take the largest value, in the column's type; NaN is larger than any number."""
    return filtered(Extreme(column_name("max", column), largest=True), where)


def first(column: str, *, where: Condition | None = None) -> AggregateFunction:
    """Take the value with the earliest event time, the smallest of several; without event time the one that arrived first."""
    return filtered(Ordered(column_name("first", column), last=False), where)


def last(column: str, *, where: Condition | None = None) -> AggregateFunction:
    """Take the value with the latest event time, the largest of several; without event time the one that arrived last."""
    return filtered(Ordered(column_name("last", column), last=True), where)


def max_by(column: str, by: str, *, where: Condition | None = None) -> AggregateFunction:
    """Take the value of `column` in the row with the largest `by`; of several such rows the largest value.

    Rows in which either is null are ignored.
    """
    return filtered(ByExtreme(column_name("max_by", column), column_name("max_by", by), largest=True), where)


def min_by(column: str, by: str, *, where: Condition | None = None) -> AggregateFunction:
    """Take the value of `column` in the row with the smallest `by`; of several such rows the smallest value.

    Rows in which either is null are ignored.
    """
    return filtered(ByExtreme(column_name("min_by", column), column_name("min_by", by), largest=False), where)


def top(n: int, by: By, *, ties: bool = False, columns: Sequence[str] | None = None, where: Condition | None = None) -> AggregateFunction:
    """Take the `n` rows with the highest `by`, the highest first: a list of structs, which `stream.explode` turns into rows.

    `by` is a column, or a list of columns and orders, as Arrow's sort keys: `[("price", "descending"), ("ts", "ascending")]`.
    Rows that are equal in it are ordered by the columns of the struct, ascending, from left to right, so the result doesn't
    depend on arrival. With `ties`, the list also has all rows that equal the n-th in `by`. Rows without a `by` are ignored. A
    struct has the columns `columns`, or all but the operator's keys.

    Raises FlowError for an `n` that is not a whole number of at least 1, or an unknown order.

    >>> import evenflow as ef
    >>> flow, out = ef.Dataflow("bids"), []
    >>> bids = [{"auction": 1, "bidder": bidder, "price": price} for bidder, price in (("a", 5), ("b", 9), ("c", 7))]
    >>> best = flow.read(ef.from_items(bids)).key_by("auction").aggregate(emit="final", bids=ef.top(2, by="price"))
    >>> _ = best.explode("bids", position="rank").write(ef.to_list(out))
    >>> _ = flow.run(runtime="local").wait()
    >>> out
    [{'auction': 1, 'rank': 1, 'bidder': 'b', 'price': 9}, {'auction': 1, 'rank': 2, 'bidder': 'c', 'price': 7}]
    """
    return filtered(top_of(n, by, ties, columns), where)


def collect(column: str, *, where: Condition | None = None) -> AggregateFunction:
    """Collect all values in a list, in the order of event time, then of the values; without event time in the values' order."""
    return filtered(Collect(column_name("collect", column)), where)


def count_distinct(column: str, *, where: Condition | None = None) -> AggregateFunction:
    """Count the distinct values exactly, int64, never null. All NaN are one value. A group keeps each of its values once."""
    return filtered(CountDistinct(column_name("count_distinct", column)), where)


def median(column: str, *, where: Condition | None = None) -> AggregateFunction:
    """Compute the exact median of integers, floats or decimals, float64: the middle value, or the mean of the two middle ones.

    A group keeps all its values, eight bytes each; `approx_quantile` needs far less.
    """
    return filtered(Quantile(column_name("median", column), 0.5, "median"), where)


def quantile(column: str, q: float, *, where: Condition | None = None) -> AggregateFunction:
    """Compute the exact `q`-quantile of integers, floats or decimals, float64.

    For n sorted values x it is the one at r = q * (n - 1), interpolated linearly between x[floor(r)] and x[ceil(r)]: DuckDB's
    `quantile_cont`, PostgreSQL's `percentile_cont`. A group keeps all its values, eight bytes each.
    Raises FlowError for a `q` outside 0 to 1.
    """
    return filtered(Quantile(column_name("quantile", column), checked_fraction("quantile", "q", q, 0, 1)), where)


def approx_distinct(column: str, relative_error: float = 0.02, *, where: Condition | None = None) -> AggregateFunction:
    """Estimate the number of distinct values, int64: exact for few, then with a standard error of at most `relative_error`.

    Takes at most 2**ceil(2 * log2(1.04 / relative_error)) bytes a group: 4,096 at 2 %. Raises FlowError for an error outside
    0.005 to 0.25.
    """
    relative_error = checked_fraction("approx_distinct", "relative_error", relative_error, 0.005, 0.25)
    return filtered(ApproxDistinct(column_name("approx_distinct", column), relative_error), where)


def approx_quantile(column: str, q: float, relative_error: float = 0.01, *, where: Condition | None = None) -> AggregateFunction:
    """Estimate the `q`-quantile (0.5 is the median), float64, with a relative error of at most `relative_error`.

    Raises FlowError for a `q` outside 0 to 1 or an error outside 0.0001 to 0.5.
    """
    q = checked_fraction("approx_quantile", "q", q, 0, 1)
    relative_error = checked_fraction("approx_quantile", "relative_error", relative_error, 0.0001, 0.5)
    return filtered(ApproxQuantile(column_name("approx_quantile", column), q, relative_error), where)
