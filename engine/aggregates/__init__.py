"""Aggregates: associative, commutative functions of groups of rows, which can be computed in parts.

>>> import numpy as np, pyarrow as pa
>>> from evenflow.engine.batch import Batch
>>> batch = Batch(pa.record_batch({"delay": [5, 7, None]}))
>>> total = sum("delay").bind(batch.rows.schema, "totals")
>>> total.finish(total.partial(batch, np.array([0, 0, 1]), groups=2)).to_pylist()
[12, None]
"""

from __future__ import annotations

from .base import Accumulator, AggregateFunction, Codes, Parts
from .custom import Aggregate
from .functions import (
    approx_distinct,
    approx_quantile,
    collect,
    count,
    count_distinct,
    first,
    last,
    max,  # noqa: A004 -- named as in SQL
    max_by,
    mean,
    median,
    min,  # noqa: A004 -- named as in SQL
    min_by,
    quantile,
    stddev,
    sum,  # noqa: A004 -- named as in SQL
    top,
    variance,
)

__all__ = [
    "Accumulator",
    "Aggregate",
    "AggregateFunction",
    "Codes",
    "Parts",
    "approx_distinct",
    "approx_quantile",
    "collect",
    "count",
    "count_distinct",
    "first",
    "last",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "quantile",
    "stddev",
    "sum",
    "top",
    "variance",
]
