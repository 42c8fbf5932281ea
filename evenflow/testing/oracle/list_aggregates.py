"""Aggregates that keep lists of values, and `where=`, over a list of rows, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

import pyarrow as pa

from ...engine.aggregates.base import AggregateFunction
from ...engine.aggregates.computed import Computed
from ...engine.aggregates.filtered import Filtered
from ...engine.aggregates.lists.collect import Collect
from ...engine.aggregates.lists.count_distinct import CountDistinct
from ...engine.aggregates.lists.exact_quantile import Quantile
from ...engine.aggregates.lists.top import ByExtreme, Top
from ...engine.aggregates.numbers.variance import Variance
from .aggregates import Timed, aggregated, values_of
from .expressions import is_true, value_of

Row = dict[str, Any]


@aggregated.register
def _(function: Filtered, rows: Timed) -> Any:
    if isinstance(function.condition, str):
        kept = [(row, time) for row, time in rows if row[function.condition]]
    else:
        kept = [(row, time) for row, time in rows if is_true(function.condition, row)]
    return aggregated(function.function, kept) if kept else _of_nothing(function.function)


@aggregated.register
def _(function: Computed, rows: Timed) -> Any:
    computed = [({name: value_of(tree, row) for name, tree in function.computed.items()}, row, time) for row, time in rows]
    return aggregated(function.function, [({**row, **values}, time) for values, row, time in computed])


def _of_nothing(function: AggregateFunction) -> Any:
    accumulator = function.bind(pa.schema([(name, pa.null()) for name in function.reads(pa.schema([]))]), "oracle")
    return accumulator.finish(accumulator.empty(1)).to_pylist()[0]


@aggregated.register
def _(function: CountDistinct, rows: Timed) -> int:
    values = values_of(function.column, rows)
    return len({"NaN" if isinstance(value, float) and math.isnan(value) else value for value in values})


@aggregated.register
def _(function: Quantile, rows: Timed) -> float | None:
    values = sorted((float(value) for value in values_of(function.column, rows)), key=_ordered)
    if not values:
        return None
    rank = function.q * (len(values) - 1)
    low, high = values[math.floor(rank)], values[math.ceil(rank)]
    part = rank - math.floor(rank)
    if low == high:
        return low
    return low + (high - low) * part if math.isfinite(high - low) else low * (1 - part) + high * part


@aggregated.register
def _(function: Variance, rows: Timed) -> float | None:
    values = [float(value) for value in values_of(function.column, rows)]
    if len(values) < 2:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = list(map(Fraction, values))
    mean = sum(exact) / len(exact)
    variance = float(sum((value - mean) ** 2 for value in exact) / (len(exact) - 1))
    return math.sqrt(variance) if function.root else variance


@aggregated.register
def _(function: Collect, rows: Timed) -> list[Any] | None:
    timed = [(time or 0, row[function.column]) for row, time in rows if row[function.column] is not None]
    return [value for _, value in sorted(timed, key=lambda pair: (pair[0], _ordered(pair[1])))] or None


@aggregated.register
def _(function: Top, rows: Timed) -> list[Row] | None:
    names, order = function.reads(pa.schema([(name, pa.null()) for name in rows[0][0]])), function.order
    there = [row for row, _ in rows if all(row[name] is not None for name, _ in order.by)]
    ranked = _ranked(there, [*order.by, *((name, False) for name in names)])
    kept = ranked[: order.n]
    if order.ties and kept:
        kept += [row for row in ranked[order.n :] if all(_ordered(row[name]) == _ordered(kept[-1][name]) for name, _ in order.by)]
    shown = function.columns if function.columns is not None else [name for name in names if name not in function.keys]
    return [{name: row[name] for name in shown} for row in kept] or None


@aggregated.register
def _(function: ByExtreme, rows: Timed) -> Any:
    there = [row for row, _ in rows if row[function.by] is not None and row[function.column] is not None]
    falls = function.largest
    return _ranked(there, [(function.by, falls), (function.column, falls)])[0][function.column] if there else None


def _ranked(rows: Iterable[Row], by: Sequence[tuple[str, bool]]) -> list[Row]:
    """Sort by columns that each fall or rise; nulls last."""

    def compare(left: Row, right: Row) -> int:
        for name, falls in by:
            a, b = left[name], right[name]
            if a is None or b is None:
                if (a is None) != (b is None):
                    return 1 if a is None else -1
            elif _ordered(a) != _ordered(b):
                return 1 if (_ordered(a) < _ordered(b)) == falls else -1
        return 0

    return sorted(rows, key=cmp_to_key(compare))


def _ordered(value: Any) -> Any:
    """Return the sort key of values: NaN counts as larger than any number."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value
