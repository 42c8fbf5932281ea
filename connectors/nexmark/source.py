"""The source of a NexMark stream: it generates only its own events, the same ones for every parallelism.

>>> reader = nexmark("bid", events=1_000).reader(0, 1)
>>> batch = reader.poll(2)
>>> batch.rows.schema.names
['auction', 'bidder', 'price', 'channel', 'url', 'dateTime', 'extra', 'seq']
>>> batch.rows["seq"].to_pylist(), batch.times.tolist()
([4, 5], [1436918400000000, 1436918400000000])
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...engine.batch import Batch
from ...engine.errors import FlowError
from ...engine.time.duration import Duration, seconds
from ...engine.time.event_time import EARLIEST, LATEST
from ..generated.numbered import NumberedRows, NumberedSource
from . import auctions, bids, people
from .numbering import EPOCH, LARGEST_GROUP, PLACES, STRIDE, Numbering, StreamName
from .schemas import SCHEMAS
from .settings import NexmarkSettings

BASE_TIME = 1_436_918_400_000
"""Midnight of 15 July 2015, UTC, in ms."""

EVENT_RATE = 10_000.0
STREAMS: Final = tuple(SCHEMAS)
MAKERS = {"person": people.columns, "auction": auctions.columns, "bid": bids.columns}


def nexmark(
    stream: StreamName,
    *,
    events: int | None = None,
    rate: float | None = None,
    every: Duration = "1ms",
    event_rate: float | None = None,
    base_time: int = BASE_TIME,
    out_of_order_group_size: int = 1,
    hot_seller_ratio: int = 4,
    hot_auction_ratio: int = 2,
    hot_bidder_ratio: int = 4,
    seed: int = 0,
    rows_per_batch: int = 8192,
    created: bool = False,
    clock: Callable[[], float] = time.monotonic,
    name: str | None = None,
) -> NumberedSource:
    """Generate one of the three streams of the NexMark benchmark (Tucker et al. 2008, as in Apache Beam and nexmark/nexmark).

    One of 50 *events* of the benchmark is a person, 3 are auctions and 46 are bids. `events` and the rates count events of all
    three streams, so three sources with the same arguments belong together. The stream ends after `events`, or never. `rate`
    events per second arrive, paced by `clock`, in a batch every `every`, or as many as the job accepts. Event time (`dateTime`)
    begins at `base_time` (ms) and advances 1 s per `event_rate` events (default: `rate`, else 10,000). With
    `out_of_order_group_size` above 1, groups of so many consecutive events are permuted.

    A row depends on `seed` and its event's number alone, which is column `seq`; times are timestamps in ms, all other numbers
    int64:

    - person: `id`, `name`, `emailAddress`, `creditCard`, `city`, `state`, `dateTime`, `extra`
    - auction: `id`, `itemName`, `description`, `initialBid`, `reserve`, `dateTime`, `expires`, `seller`, `category`, `extra`
    - bid: `auction`, `bidder`, `price`, `channel`, `url`, `dateTime`, `extra`

    Ids begin at 1000. All but one in `hot_auction_ratio` bids go to one hot auction, which changes with every hundredth, and
    likewise for the bidders of bids and the sellers of auctions; the others refer to the newest auctions and people, and to the
    next ten, which arrive later. `extra` pads the rows to 200, 500 and 100 bytes on average. `created` adds an int64 column: the
    time (wall clock, nanoseconds) at which the row was due. Raises FlowError for an impossible argument.

    >>> nexmark("auction", events=50).reader(0, 1).poll(100).rows["id"].to_pylist()
    [1000, 1001, 1002]
    """
    if stream not in PLACES:
        raise FlowError(f"nexmark: stream {stream!r} is unknown; there are: {', '.join(PLACES)}")
    for what, number in (("rate", rate), ("event_rate", event_rate)):
        if number is not None and not (isinstance(number, (int, float)) and not isinstance(number, bool) and number > 0):
            raise FlowError(f"nexmark: {what} is {number!r}; it must be above 0 events per second")
    for what, count, least in (
        ("events", events, 0), ("rows_per_batch", rows_per_batch, 1), ("hot_seller_ratio", hot_seller_ratio, 1),
        ("hot_auction_ratio", hot_auction_ratio, 1), ("hot_bidder_ratio", hot_bidder_ratio, 1), ("seed", seed, 0),
    ):  # fmt: skip
        if count is not None and not (_is_whole(count) and count >= least):
            raise FlowError(f"nexmark: {what} is {count!r}; it must be a whole number of at least {least}")
    group = out_of_order_group_size
    if not (_is_whole(group) and 1 <= group <= LARGEST_GROUP and group % STRIDE):
        raise FlowError(
            f"nexmark: out_of_order_group_size is {group!r}; it must be a whole number from 1 to {LARGEST_GROUP:,}, "
            f"and no multiple of {STRIDE}, with which some events would be repeated and others missing"
        )
    settings = NexmarkSettings(seed, base_time, event_rate or rate or EVENT_RATE, hot_seller_ratio, hot_auction_ratio, hot_bidder_ratio)
    if not _is_whole(base_time):
        raise FlowError(f"nexmark: base_time is {base_time!r}; it must be a whole number of milliseconds since 1970")
    last = base_time + (events or 0) * 1000 / settings.event_rate
    if not EARLIEST / 1000 <= base_time <= last <= LATEST / 1000:
        raise FlowError(f"nexmark: the events' times go from {base_time} to {last:.0f} ms since 1970; they must be in the years 1 to 9999")
    numbering = Numbering(stream, group)
    total = None if events is None else numbering.rows_before(events)
    rows_rate = None if rate is None else rate * len(PLACES[stream]) / EPOCH
    rows = NexmarkRows(settings, numbering)
    return NumberedSource(name or f"nexmark_{stream}", rows, rows_rate, seconds(every, "every"), total, rows_per_batch, created, clock)


@dataclass(frozen=True, slots=True)
class NexmarkRows(NumberedRows):
    """The rows of a stream, counted 0, 1, 2 and so on as they arrive."""

    time_column = "dateTime"

    settings: NexmarkSettings
    numbering: Numbering

    def batch(self, numbers: npt.NDArray[np.int64]) -> Batch:
        events = self.numbering.numbers(numbers)
        times = self.settings.times(events)
        columns = MAKERS[self.numbering.stream](self.settings, events)
        columns["dateTime"] = pa.array(times, pa.timestamp("ms", "UTC"))
        columns["seq"] = pa.array(events)
        schema = SCHEMAS[self.numbering.stream]
        return Batch(pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema), times * 1000)

    def earliest(self, number: int) -> int:
        return int(self.settings.times(np.array([self.numbering.least_number(number)]))[0]) * 1000


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
