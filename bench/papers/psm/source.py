"""The streams of the price search machine: rows are functions of their number.

A visitor takes one *turn* after the other: each is a search, and a click or an impression. One of two consecutive turns has a click, at
random, and the other an impression, so there are as many of both, and twice as many searches. Products are drawn uniformly.

>>> reader = visits("click", turns=4).reader(0, 1)
>>> reader.poll(10).rows["seq"].to_pylist()
[0, 3]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....connectors.generated.numbered import NumberedRows, NumberedSource
from ....connectors.generated.random_bits import below, random_bits
from ....engine.batch import Batch

StreamName = Literal["click", "impression", "search"]

STREAMS: Final[tuple[StreamName, ...]] = ("click", "impression", "search")
PRODUCTS, OWNERS, CATEGORIES, RANKS = 10_000, 500, 40, 200
BASE_TIME = 1_500_000_000_000
"""The first event time, in ms."""

TURNS_PER_SECOND = 1_000.0
"""Turns per second of event time, unless there is a rate."""

CHEAPEST, DEAREST, PRICE_UNIT = 0.2, 0.7, 1 / 8192
"""The price of a click; multiples of the unit, so that the mean of two prices is exact."""

_KIND, _PRODUCT, _PRICE, _RANK, _OWNER, _CATEGORY = range(400, 406)
_STREAM_NUMBER: Final = {name: number * 10 for number, name in enumerate(STREAMS)}


def visits(
    stream: StreamName,
    *,
    turns: int | None = None,
    rate: float | None = None,
    turn_rate: float | None = None,
    products: int = PRODUCTS,
    seed: int = 0,
    rows_per_batch: int = 8192,
    created: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> NumberedSource:
    """Return a stream of `turns` turns, or without end; `rate` turns a second, paced by `clock`, or as fast as the job takes them.

    Event time passes 1 s per `turn_rate` turns (default: `rate`, else 1,000). Columns: `timestamp` (ms, UTC), `category`, `product`; clicks
    also have `owner` and `price` (float64), searches `rank` (from 0 to 199); `seq` (int64) is the number of the turn. A product has one
    category and one owner. `created` adds the time (wall clock, nanoseconds) at which the row was due.
    """
    rows = VisitRows(stream, turn_rate or rate or TURNS_PER_SECOND, products, seed)
    share = 1.0 if stream == "search" else 0.5
    total = None if turns is None else turns if stream == "search" else turns // 2
    rows_rate = None if rate is None else rate * share
    return NumberedSource(stream, rows, rows_rate, 0.001, total, rows_per_batch, created, clock)


def all_rows(stream: StreamName, turns: int, **arguments: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `turns` turns in order; arguments of `visits`."""
    reader = visits(stream, turns=turns, **arguments).reader(0, 1)
    while not reader.finished:
        batch = reader.poll(1 << 16)
        assert batch is not None
        yield batch.rows


@dataclass(frozen=True, slots=True)
class VisitRows(NumberedRows):
    """The rows of a stream, counted 0, 1, 2 and so on."""

    stream: StreamName
    turn_rate: float
    products: int
    seed: int

    def batch(self, numbers: npt.NDArray[np.int64]) -> Batch:
        turns = self._turns(numbers)
        product = below(self._bits(_PRODUCT, turns), self.products)
        times = self._times(turns)
        columns = {
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
            "category": pa.array(below(random_bits(self.seed, _CATEGORY, product), CATEGORIES)),
            "product": pa.array(product),
        }
        if self.stream == "click":
            steps = round((DEAREST - CHEAPEST) / PRICE_UNIT)
            columns["owner"] = pa.array(below(random_bits(self.seed, _OWNER, product), OWNERS))
            columns["price"] = pa.array((round(CHEAPEST / PRICE_UNIT) + below(self._bits(_PRICE, turns), steps)) * PRICE_UNIT)
        elif self.stream == "search":
            columns["rank"] = pa.array(below(self._bits(_RANK, turns), RANKS))
        columns["seq"] = pa.array(turns)
        return Batch(pa.record_batch(columns), times * 1000)

    def earliest(self, number: int) -> int:
        first = number if self.stream == "search" else 2 * number
        return int(self._times(np.array([first]))[0]) * 1000

    def _turns(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if self.stream == "search":
            return numbers
        second = below(random_bits(self.seed, _KIND, numbers), 2)
        return 2 * numbers + (second if self.stream == "click" else 1 - second)

    def _times(self, turns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return BASE_TIME + (turns * (1000.0 / self.turn_rate)).astype(np.int64)

    def _bits(self, purpose: int, turns: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return random_bits(self.seed, purpose + _STREAM_NUMBER[self.stream], turns)
