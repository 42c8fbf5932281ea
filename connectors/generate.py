"""A synthetic keyed stream, the same for every parallelism: row `seq` depends on the seed and `seq` alone.

>>> batch = generate(total=3, keys=10, seed=7).reader(0, 1).poll(100)
>>> batch.rows.schema.names, batch.rows["seq"].to_pylist()
(['key', 'ts', 'value', 'seq'], [0, 1, 2])
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.batch import Batch
from ..engine.errors import FlowError
from ..engine.protocol.elements import MAX_TIME
from ..engine.source import Source, SourceReader
from ..engine.time.duration import Duration, microseconds, seconds
from ..engine.time.event_time import EARLIEST, LATEST
from .share import ENDLESS, Share, share_out

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
) -> GenerateSource:
    """Rows of `key` (int64, or string "key-17"), `ts` (int64 ms, the event time), `value` (float64), `seq` (int64, 0, 1, 2 ...).

    `rate` rows a second in all, paced by `clock` (seconds), or as fast as the job takes them; `total` rows, or without end. Paced rows come
    in batches, one every `every`, with `rows_per_batch` rows at most: a longer interval takes less processor time and adds latency. Key `k`
    of `keys` comes with probability proportional to `1 / (k + 1) ** zipf`: 0 is uniform, and key 0 is the hottest. `value` is a multiple of
    1/8 in [0, 1000), so that sums are exact in any order. `ts` starts at `start_time` (ms) and passes 1 s per `event_rate` rows (default:
    `rate`, else 1000); each row is older by a random part of `max_delay`. `created` adds an int64 column: the time (wall clock,
    nanoseconds) at which the row was due, so that a measured latency includes stalls. Raises FlowError for an impossible argument.

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
    rows = Rows(keys, zipf, string_keys, seed, start_time, event_rate or rate or 1000.0, microseconds(max_delay, "max_delay") // 1_000)
    return GenerateSource(name, rows, rate, seconds(every, "every"), total, rows_per_batch, created, clock)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True)
class Rows:
    """The content of row `seq`, as a pure function, so that a reader can begin anywhere."""

    keys: int
    zipf: float
    string_keys: bool
    seed: int
    start_time: int
    event_rate: float
    max_delay: int

    def columns(self, seq: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """The columns of rows `seq`, each of its shape."""
        key = self._keys(seq)
        value = (self._random(seq, _VALUE) >> np.uint64(32)) % np.uint64(8000)
        return {
            "key": pc.binary_join_element_wise("key-", pc.cast(pa.array(key), pa.string()), "") if self.string_keys else pa.array(key),
            "ts": pa.array(self._times(seq)),
            "value": pa.array(value.astype(np.float64) / 8.0),
            "seq": pa.array(seq),
        }

    def earliest(self, seq: int) -> int:
        """No row from `seq` on has an event time (ms) below this."""
        return int(self._schedule(np.array([seq]))[0]) - self.max_delay

    def _schedule(self, seq: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self.start_time + (seq * (1000.0 / self.event_rate)).astype(np.int64)

    def _times(self, seq: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        times = self._schedule(seq)
        if self.max_delay:
            times -= (self._random(seq, _DELAY) % np.uint64(self.max_delay + 1)).astype(np.int64)
        return times

    def _keys(self, seq: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        uniform = (self._random(seq, _KEY) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        if self.zipf == 0:
            return (uniform * self.keys).astype(np.int64)
        return np.searchsorted(zipf_cdf(self.keys, self.zipf), uniform, side="right").astype(np.int64)

    def _random(self, seq: npt.NDArray[np.int64], purpose: int) -> npt.NDArray[np.uint64]:
        """64 random bits per row: the mixing function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) over a counter."""
        z = seq.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + _stream(self.seed, purpose)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
        return mixed


class GenerateSource(Source):
    """Worker `index` of `parallelism` gives the rows with `seq mod parallelism == index`, in the order of `seq`.

    After a reassignment (`share.py`) it gives several such progressions, each in the order of `seq`.
    """

    guarantee = "exactly once (rows are a function of seed and seq; seeks to the checkpointed rows)"

    def __init__(
        self,
        name: str,
        rows: Rows,
        rate: float | None,
        every: float,
        total: int | None,
        rows_per_batch: int,
        created: bool,
        clock: Callable[[], float],
    ) -> None:
        self.name, self.rate, self._rows, self._every, self._total = name, rate, rows, every, total
        self._rows_per_batch, self._created, self._clock = rows_per_batch, created, clock

    def reader(self, index: int, parallelism: int) -> GenerateReader:
        pace = None if self.rate is None else Pace(self.rate / parallelism, self._every, self._clock)
        return GenerateReader(self._rows, Share.of(index, parallelism), self._end, pace, self._rows_per_batch, self._created)

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        return [share.encode() for share in share_out([Share.decode(position) for position in positions], parallelism, self.name)]

    def earliest(self, position: Any) -> int:
        first = Share.decode(position).lowest
        return MAX_TIME if first >= self._end else self._rows.earliest(first) * 1000

    @property
    def _end(self) -> int:
        return ENDLESS if self._total is None else self._total


class Pace:
    """The number of rows due by now, at `rate` rows a second in batches of `every` seconds; starts at the first call."""

    def __init__(self, rate: float, every: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._batch = max(1, int(rate * every))
        self._begun: tuple[float, int] | None = None

    def due(self, given: int) -> int:
        """Rows to give now, after `given`: 0 until a small batch has gathered."""
        rows = self.behind(given)
        return rows if rows >= self._batch else 0

    def behind(self, given: int) -> int:
        """Rows that are due by now and not among the `given`."""
        return int(self._elapsed() * self._rate) - given

    def wait(self, given: int) -> float:
        """Seconds until `due(given)` is no longer 0."""
        return max(1e-6, (given + self._batch) / self._rate - self._elapsed())

    def due_at(self, given: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The time (wall clock, ns) at which each row, counted from 0, was due. Call it after `due`."""
        wall = 0 if self._begun is None else self._begun[1]
        return wall + (given * (1e9 / self._rate)).astype(np.int64)

    def _elapsed(self) -> float:
        now = self._clock()
        if self._begun is None:
            self._begun = (now, time.time_ns())
        return now - self._begun[0]


class GenerateReader(SourceReader):
    """The rows of its share below `end`, always from the progression that is furthest behind. The position is the rest of the share."""

    def __init__(self, rows: Rows, share: Share, end: int, pace: Pace | None, rows_per_batch: int, created: bool) -> None:
        self._rows, self._share, self._end = rows, share, end
        self._pace, self._rows_per_batch, self._created = pace, rows_per_batch, created
        self._given = 0

    def poll(self, max_rows: int) -> Batch | None:
        rows = self._share.first
        count = min(max_rows, self._rows_per_batch, len(range(rows.start, min(rows.stop, self._end), rows.step)))
        if self._pace is not None:
            count = min(count, self._pace.due(self._given))
        if count <= 0:
            return None
        columns = self._rows.columns(np.arange(rows.start, rows.start + count * rows.step, rows.step))
        if self._created:
            columns["created"] = pa.array(self._due_at(np.arange(self._given, self._given + count)))
        self._share = self._share.without_first(count)
        self._given += count
        return Batch(pa.record_batch(columns), columns["ts"].to_numpy() * 1000)

    @property
    def finished(self) -> bool:
        return self._share.lowest >= self._end

    def watermark(self) -> int:
        return MAX_TIME if self.finished else self._rows.earliest(self._share.lowest) * 1000

    def position(self) -> list[Any]:
        return self._share.encode()

    def seek(self, position: Any) -> None:
        self._share, self._given = Share.decode(position), 0

    def backlog(self) -> int | None:
        return None if self._pace is None else self._pace.behind(self._given)

    def ready_in(self) -> float:
        return 0.0 if self._pace is None else self._pace.wait(self._given)

    def _due_at(self, given: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.full(len(given), time.time_ns()) if self._pace is None else self._pace.due_at(given)


@lru_cache(maxsize=64)
def _stream(seed: int, purpose: int) -> np.uint64:
    """The start of an independent sequence for each purpose."""
    return np.uint64(np.random.SeedSequence((seed, purpose)).generate_state(1, np.uint64)[0])


@lru_cache(maxsize=4)
def zipf_cdf(keys: int, exponent: float) -> npt.NDArray[np.float64]:
    """Cumulative probabilities of keys 0 .. keys-1, shape (keys,), where key `k` has weight `1 / (k + 1) ** exponent`."""
    cumulative = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -exponent)
    cumulative /= cumulative[-1]
    return cumulative
