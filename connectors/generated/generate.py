"""A synthetic keyed stream, the same for every parallelism: row `seq` depends on the seed and `seq` alone.

>>> batch = generate(total=3, keys=10, seed=7).reader(0, 1).poll(100)
>>> batch.rows.schema.names, batch.rows["seq"].to_pylist()
(['key', 'ts', 'value', 'seq'], [0, 1, 2])
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...engine.batch import Batch
from ...engine.errors import FlowError
from ...engine.time.duration import Duration, microseconds, seconds
from ...engine.time.event_time import EARLIEST, LATEST
from .numbered import NumberedRows, NumberedSource
from .random_bits import random_bits, unit

_KEY, _VALUE, _DELAY = 1, 2, 3


def generate(
    *,
    rate: float | None = None,
    every: Duration = "1ms",
    total: int | None = None,
    keys: int = 1000,
    zipf: float = 0.0,
    string_keys: bool = False,
    rows_per_batch: int = 8192,
    seed: int = 0,
    start_time: int = 0,
    event_rate: float | None = None,
    max_delay: Duration = 0,
    created: bool = False,
    clock: Callable[[], float] = time.monotonic,
    name: str = "generate",
) -> NumberedSource:
    """Generate rows of `key` (int64, or string "key-17"), `ts` (int64 ms, the event time), `value` (float64), `seq` (int64, 0, 1,
    2 ...).

    The stream has `rate` rows per second, paced by `clock` (seconds), or as many as the job accepts, and ends after `total` rows
    or never. Paced rows arrive in batches, one every `every`, of at most `rows_per_batch` rows: a longer interval takes less
    processor time and adds latency. Key `k` of `keys` occurs with probability proportional to `1 / (k + 1) ** zipf`: 0 is
    uniform, and key 0 is the hottest. `value` is a multiple of 1/8 in [0, 1000), so that sums are exact in any order. `ts` starts
    at `start_time` (ms) and advances 1 s per `event_rate` rows (default: `rate`, else 1000); each row is older by a random
    fraction of `max_delay`. `created` adds an int64 column: the time (wall clock, nanoseconds) at which the row was due, so that
    a measured latency includes stalls. Raises FlowError for an impossible argument.

    >>> generate(total=5, keys=3, string_keys=True, start_time=1_000).reader(0, 1).poll(2).rows["ts"].to_pylist()
    [1000, 1001]
    """
    for what, number in (("rate", rate), ("event_rate", event_rate)):
        if number is not None and not (_is_number(number) and number > 0):
            raise FlowError(f"generate: {what} is {number!r}; it must be above 0 rows per second")
    for what, count, least in (("keys", keys, 1), ("rows_per_batch", rows_per_batch, 1), ("total", total, 0)):
        if count is not None and not (isinstance(count, int) and not isinstance(count, bool) and count >= least):
            raise FlowError(f"generate: {what} is {count!r}; it must be a whole number of at least {least}")
    if not _is_number(zipf) or zipf < 0:
        raise FlowError(f"generate: zipf is {zipf!r}; it must be at least 0 (uniform)")
    if not isinstance(start_time, int):
        raise FlowError(f"generate: start_time is {start_time!r}; it must be a whole number of milliseconds since 1970")
    last = start_time + (total or 0) * 1000 / (event_rate or rate or 1000.0)
    if not EARLIEST / 1000 <= start_time <= last <= LATEST / 1000:
        raise FlowError(f"generate: the rows' times go from {start_time} to {last:.0f} ms since 1970; they must be in the years 1 to 9999")
    rows = GeneratedRows(
        keys, zipf, string_keys, seed, start_time, event_rate or rate or 1000.0, microseconds(max_delay, "max_delay") // 1_000
    )
    return NumberedSource(name, rows, rate, seconds(every, "every"), total, rows_per_batch, created, clock)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True)
class GeneratedRows(NumberedRows):
    """The settings of a synthetic stream, and a function from a row's number to its content."""

    time_column = "ts"

    keys: int
    zipf: float
    string_keys: bool
    seed: int
    start_time: int
    event_rate: float
    max_delay: int

    def columns(self, seq: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the columns of rows `seq`, each with its shape."""
        key = self._keys(seq)
        value = (random_bits(self.seed, _VALUE, seq) >> np.uint64(32)) % np.uint64(8000)
        return {
            "key": pc.binary_join_element_wise("key-", pc.cast(pa.array(key), pa.string()), "") if self.string_keys else pa.array(key),
            "ts": pa.array(self._times(seq)),
            "value": pa.array(value.astype(np.float64) / 8.0),
            "seq": pa.array(seq),
        }

    def batch(self, numbers: npt.NDArray[np.int64]) -> Batch:
        columns = self.columns(numbers)
        return Batch(pa.record_batch(columns), columns["ts"].to_numpy() * 1000)

    def earliest(self, number: int) -> int:
        return (int(self._schedule(np.array([number]))[0]) - self.max_delay) * 1000

    def _schedule(self, seq: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self.start_time + (seq * (1000.0 / self.event_rate)).astype(np.int64)

    def _times(self, seq: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        times = self._schedule(seq)
        if self.max_delay:
            times -= (random_bits(self.seed, _DELAY, seq) % np.uint64(self.max_delay + 1)).astype(np.int64)
        return times

    def _keys(self, seq: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        uniform = unit(random_bits(self.seed, _KEY, seq))
        if self.zipf == 0:
            return (uniform * self.keys).astype(np.int64)
        return np.searchsorted(zipf_cdf(self.keys, self.zipf), uniform, side="right").astype(np.int64)


@lru_cache(maxsize=4)
def zipf_cdf(keys: int, exponent: float) -> npt.NDArray[np.float64]:
    """Return the cumulative probabilities of keys 0 .. keys-1, shape (keys,); key `k` has weight `1 / (k + 1) ** exponent`."""
    cumulative = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -exponent)
    cumulative /= cumulative[-1]
    return cumulative
