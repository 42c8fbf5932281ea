"""Counters, gauges and histograms of a user's function, and the context with which its method `open` gets them.

>>> context = FunctionContext("price", index=0, parallelism=2)
>>> context.counter("rejected").add(3)
>>> context.histogram("seconds", bounds=(0.1, 1)).observe(0.5)
>>> for measured in context.measured():
...     print(measured.kind, measured.name, measured.value, measured.counts)
counter rejected 3.0 ()
histogram seconds 0.5 (0, 1, 0)
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal, TypeVar

DEFAULT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The bounds of a histogram's buckets unless the function gives its own: those of Prometheus' clients, for seconds."""

MOST_NAMES, MOST_BOUNDS = 100, 50
"""The most measures of an operator, and buckets of a histogram, because each is a time series for every worker."""

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Measured:
    """The reading of a measure in one worker since the operator was opened there.

    `value` is the count of a counter, the value of a gauge, the sum of a histogram. `counts` are a histogram's values between its
    `bounds`: the first count is of those up to the first bound, the last of those above the last bound.
    """

    operator: str
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    value: float
    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()

    def buckets(self) -> list[tuple[str, float]]:
        """Return each bound, as Prometheus names it, with the number of values up to it."""
        return list(zip([*map(str, self.bounds), "+Inf"], accumulate(self.counts), strict=True))


class Counter:
    """A number that only rises, such as rejected records."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        """Add a number of at least 0. Raises ValueError for any other."""
        if not amount >= 0:
            raise ValueError(f"a counter only rises: add({amount!r}); use a gauge for a value that falls")
        self.value += amount


class Gauge:
    """A number that rises and falls, such as the size of a cache."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def set(self, value: float) -> None:
        """Set the value."""
        self.value = float(value)


class Histogram:
    """A distribution of values, such as the seconds that calls took."""

    __slots__ = ("bounds", "counts", "value")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.value = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        """Add a value. NaN counts as above all bounds."""
        self.counts[-1 if math.isnan(value) else bisect_left(self.bounds, value)] += 1
        self.value += value


_M = TypeVar("_M", Counter, Gauge, Histogram)


class FunctionContext:
    """The context of a function's object in one worker: its operator, the worker's index, and the object's metrics.

    `operator` is the operator's name; `index` is that of the worker, below `parallelism`, the operator's workers when the object
    was opened. Metrics are counted in each worker, from 0 after a recovery, and are no part of the state.
    """

    def __init__(self, operator: str, index: int, parallelism: int) -> None:
        self.operator, self.index, self.parallelism = operator, index, parallelism
        self._measures: dict[str, Counter | Gauge | Histogram] = {}

    def counter(self, name: str) -> Counter:
        """Return the counter with this name; it is created at the first call.

        Raises ValueError for a name that can't be one, TypeError for that of another kind of metric.
        """
        return self._measure(name, Counter)

    def gauge(self, name: str) -> Gauge:
        """Return the gauge with this name, as `counter` does."""
        return self._measure(name, Gauge)

    def histogram(self, name: str, *, bounds: Sequence[float] = DEFAULT_BOUNDS) -> Histogram:
        """Return the histogram with this name, as `counter` does.

        `bounds` rise; each is the largest value of its bucket. Raises ValueError for others, also for a histogram that exists.
        """
        checked = tuple(map(float, bounds))
        rising = all(a < b for a, b in pairwise(checked))
        if not 1 <= len(checked) <= MOST_BOUNDS or not rising or not all(map(math.isfinite, checked)):
            raise ValueError(f"histogram({name!r}): bounds are 1 to {MOST_BOUNDS} finite numbers that rise, got {bounds!r:.200}")
        found = self._measure(name, Histogram, checked)
        if found.bounds != checked:
            raise ValueError(f"histogram({name!r}) has the bounds {found.bounds}; give the same, got {checked}")
        return found

    def measured(self) -> tuple[Measured, ...]:
        """Return the readings of all metrics, in the order in which they were created."""
        return tuple(_reading(self.operator, name, measure) for name, measure in self._measures.items())

    def _measure(self, name: str, kind: type[_M], *arguments: Any) -> _M:
        found = self._measures.get(name)
        if found is None:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(f"{kind.__name__.lower()}({name!r}): a name has letters, digits and `_`, and begins with no digit")
            if len(self._measures) == MOST_NAMES:
                raise ValueError(f"{kind.__name__.lower()}({name!r}): a function has at most {MOST_NAMES} metrics; use fixed names")
            found = self._measures[name] = kind(*arguments)
        if not isinstance(found, kind):
            raise TypeError(f"{name!r} is a {type(found).__name__.lower()} already; give the {kind.__name__.lower()} another name")
        return found


def _reading(operator: str, name: str, measure: Counter | Gauge | Histogram) -> Measured:
    if isinstance(measure, Histogram):
        return Measured(operator, name, "histogram", measure.value, measure.bounds, tuple(measure.counts))
    return Measured(operator, name, "counter" if isinstance(measure, Counter) else "gauge", measure.value)
