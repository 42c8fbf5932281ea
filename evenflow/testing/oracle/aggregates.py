"""Aggregates over a list of rows, in plain Python: the reference for the engine's columns.

>>> from evenflow.engine.aggregates.named.functions import mean
>>> aggregated(mean("n"), [({"n": 1}, None), ({"n": None}, None), ({"n": 2}, None)])
1.5
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce, singledispatch
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.aggregates.base import AggregateFunction
from ...engine.aggregates.lists.ordered import Ordered
from ...engine.aggregates.named.custom import Aggregate
from ...engine.aggregates.numbers.count import Count
from ...engine.aggregates.numbers.extremes import Extreme
from ...engine.aggregates.numbers.numeric import Mean, Sum
from ...engine.batch import Batch

Timed = Sequence[tuple[dict[str, Any], int | None]]
"""Rows (at least one) with their event times, microseconds or None."""


@singledispatch
def aggregated(function: AggregateFunction, rows: Timed) -> Any:
    """Return the aggregate of `rows`.

    A sketch (`approx_distinct`, `approx_quantile`) has no plain counterpart: the engine's own gets all rows in one piece, so that it is at
    least compared with itself in many pieces.
    """
    if function.column is not None and not values_of(function.column, rows):
        accumulator = function.bind(pa.schema({function.column: pa.int64()}), "oracle")
        return accumulator.finish(accumulator.empty(1)).to_pylist()[0]
    batch = pa.Table.from_pylist([row for row, _ in rows]).combine_chunks().to_batches()[0]
    accumulator = function.bind(batch.schema, "oracle")
    return accumulator.finish(accumulator.partial(Batch(batch), np.zeros(len(rows), np.int64), 1)).to_pylist()[0]


@aggregated.register
def _(function: Count, rows: Timed) -> int:
    return len(rows) if function.column is None else len(values_of(function.column, rows))


@aggregated.register
def _(function: Sum, rows: Timed) -> Any:
    values = values_of(function.column, rows)
    return reduce(operator.add, values) if values else None


@aggregated.register
def _(function: Mean, rows: Timed) -> float | None:
    values = values_of(function.column, rows)
    return float(sum(values) / len(values)) if values else None


@aggregated.register
def _(function: Extreme, rows: Timed) -> Any:
    values = values_of(function.column, rows)
    return _extreme(values, largest=function.largest) if values else None


@aggregated.register
def _(function: Ordered, rows: Timed) -> Any:
    timed = [(time, row[function.column]) for row, time in rows if row[function.column] is not None]
    if not timed:
        return None
    times = [time for time, _ in timed if time is not None]
    if not times:
        return timed[-1 if function.last else 0][1]
    wanted = max(times) if function.last else min(times)
    return _extreme([value for time, value in timed if time == wanted], largest=function.last)


@aggregated.register
def _(function: Aggregate, rows: Timed) -> Any:
    accumulator = function.create()
    for row, _ in rows:
        accumulator = function.add(accumulator, dict(row))
    return function.finish(accumulator)


def values_of(column: str, rows: Timed) -> list[Any]:
    """Return the non-null values of a column."""
    return [row[column] for row, _ in rows if row[column] is not None]


def _extreme(values: Sequence[Any], *, largest: bool) -> Any:
    """Return the sort key of values: NaN counts as larger than any number."""
    return (max if largest else min)(values, key=lambda value: (isinstance(value, float) and math.isnan(value), value))
