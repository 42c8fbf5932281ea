"""The aggregates of the API: `ef.count()`, `ef.sum("delay")`, ...

All ignore nulls, as in SQL, and all but the counts are null for a group without values. All are associative and commutative, so
a combiner can aggregate before the exchange.

Each that takes a column also takes an expression of columns: `sum(col("price") * col("qty"))`.

Each takes `where`: an expression, or the name of a column of booleans. It then aggregates only the rows for which that is true;
null counts as false.

>>> sum("delay"), approx_quantile("delay", 0.99)
(Sum(column='delay'), ApproxQuantile(column='delay', q=0.99, relative_error=0.01))
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from ...expressions.expression import Expression
from ..base import AggregateFunction
from ..column import checked_fraction
from ..computed import over, over_all
from ..filtered import Where, filtered
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

Values: TypeAlias = str | Expression
"""The name of a column, or an expression of columns."""


def count(column: Values | None = None, *, where: Where | None = None) -> AggregateFunction:
    """Count the rows, or the non-null values in `column`; int64, never null."""
    return filtered(Count() if column is None else over("count", column, Count), where)


def sum(column: Values, *, where: Where | None = None) -> AggregateFunction:  # noqa: A001 -- used as `ef.sum`, as in SQL
    """Sum the values: int64 for integers (exact; an error if it doesn't fit), float64 for floats, exact for decimals and
    durations.
    """
    return filtered(over("sum", column, Sum), where)


def mean(column: Values, *, where: Where | None = None) -> AggregateFunction:
    """Compute the mean of integers, floats or decimals; float64."""
    return filtered(over("mean", column, Mean), where)


def variance(column: Values, *, where: Where | None = None) -> AggregateFunction:
    """Compute the sample variance (SQL's `var_samp`) of integers, floats or decimals; float64, null for fewer than two values.

    It uses exact sums, so it doesn't depend on the order of the values, nor lose digits when they are far from zero. A group
    keeps 56 bytes for integers, 104 for decimals, and for floats about 80 bytes for each power of two among its values.
    """
    return filtered(over("variance", column, partial(Variance, root=False)), where)


def stddev(column: Values, *, where: Where | None = None) -> AggregateFunction:
    """Compute the sample standard deviation (SQL's `stddev_samp`): the square root of `variance`.

    >>> import evenflow as ef
    >>> flow, out = ef.Dataflow("spread"), []
    >>> rows = flow.read(ef.from_items([{"k": 1, "x": x} for x in (2, 4, 4, 4, 5, 5, 7, 9)]))
    >>> spread = {"variance": ef.variance("x"), "stddev": ef.stddev("x", where=ef.col("x") < 5)}
    >>> _ = rows.key_by("k").aggregate(emit="final", **spread).write(ef.to_list(out))
    >>> _ = flow.run(runtime="local").wait()
    >>> out
    [{'k': 1, 'variance': 4.571428571428571, 'stddev': 1.0}]
    """
    return filtered(over("stddev", column, partial(Variance, root=True)), where)


def min(column: Values, *, where: Where | None = None) -> AggregateFunction:  # noqa: A001 -- used as `ef.min`, as in SQL
    """Take the smallest value, in the column's type; NaN is larger than any number."""
    return filtered(over("min", column, partial(Extreme, largest=False)), where)


def max(column: Values, *, where: Where | None = None) -> AggregateFunction:  # noqa: A001 -- used as `ef.max`, as in SQL
    """Take the largest value, in the column's type; NaN is larger than any number."""
    return filtered(over("max", column, partial(Extreme, largest=True)), where)


def first(column: Values, *, where: Where | None = None) -> AggregateFunction:
    """Take the value with the earliest event time, the smallest of several; without event time the one that arrived first."""
    return filtered(over("first", column, partial(Ordered, last=False)), where)


def last(column: Values, *, where: Where | None = None) -> AggregateFunction:
    """Take the value with the latest event time, the largest of several; without event time the one that arrived last."""
    return filtered(over("last", column, partial(Ordered, last=True)), where)


def max_by(column: Values, by: Values, *, where: Where | None = None) -> AggregateFunction:
    """Take the value of `column` in the row with the largest `by`; of several such rows the largest value.

    Rows in which either is null are ignored.
    """
    return filtered(over_all("max_by", (column, by), partial(ByExtreme, largest=True)), where)


def min_by(column: Values, by: Values, *, where: Where | None = None) -> AggregateFunction:
    """Take the value of `column` in the row with the smallest `by`; of several such rows the smallest value.

    Rows in which either is null are ignored.
    """
    return filtered(over_all("min_by", (column, by), partial(ByExtreme, largest=False)), where)


def top(n: int, by: By, *, ties: bool = False, columns: Sequence[str] | None = None, where: Where | None = None) -> AggregateFunction:
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


def collect(column: Values, *, where: Where | None = None) -> AggregateFunction:
    """Collect all values in a list, in the order of event time, then of the values; without event time in the values' order."""
    return filtered(over("collect", column, Collect), where)


def count_distinct(column: Values, *, where: Where | None = None) -> AggregateFunction:
    """Count the distinct values exactly, int64, never null. All NaN are one value. A group keeps each of its values once."""
    return filtered(over("count_distinct", column, CountDistinct), where)


def median(column: Values, *, where: Where | None = None) -> AggregateFunction:
    """Compute the exact median of integers, floats or decimals, float64: the middle value, or the mean of the two middle ones.

    A group keeps all its values, eight bytes each; `approx_quantile` needs far less.
    """
    return filtered(over("median", column, lambda name: Quantile(name, 0.5, "median")), where)


def quantile(column: Values, q: float, *, where: Where | None = None) -> AggregateFunction:
    """Compute the exact `q`-quantile of integers, floats or decimals, float64.

    For n sorted values x it is the one at r = q * (n - 1), interpolated linearly between x[floor(r)] and x[ceil(r)]: DuckDB's
    `quantile_cont`, PostgreSQL's `percentile_cont`. A group keeps all its values, eight bytes each.
    Raises FlowError for a `q` outside 0 to 1.
    """
    q = checked_fraction("quantile", "q", q, 0, 1)
    return filtered(over("quantile", column, lambda name: Quantile(name, q)), where)


def approx_distinct(column: Values, relative_error: float = 0.02, *, where: Where | None = None) -> AggregateFunction:
    """Estimate the number of distinct values, int64: exact for few, then with a standard error of at most `relative_error`.

    Takes at most 2**ceil(2 * log2(1.04 / relative_error)) bytes a group: 4,096 at 2 %. Raises FlowError for an error outside
    0.005 to 0.25.
    """
    relative_error = checked_fraction("approx_distinct", "relative_error", relative_error, 0.005, 0.25)
    return filtered(over("approx_distinct", column, lambda name: ApproxDistinct(name, relative_error)), where)


def approx_quantile(column: Values, q: float, relative_error: float = 0.01, *, where: Where | None = None) -> AggregateFunction:
    """Estimate the `q`-quantile (0.5 is the median), float64, with a relative error of at most `relative_error`.

    Raises FlowError for a `q` outside 0 to 1 or an error outside 0.0001 to 0.5.
    """
    q = checked_fraction("approx_quantile", "q", q, 0, 1)
    relative_error = checked_fraction("approx_quantile", "relative_error", relative_error, 0.0001, 0.5)
    return filtered(over("approx_quantile", column, lambda name: ApproxQuantile(name, q, relative_error)), where)
