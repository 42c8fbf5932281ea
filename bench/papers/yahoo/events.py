"""The events of the Yahoo streaming benchmark: rows are functions of their number.

>>> reader = ad_events(events=4).reader(0, 1)
>>> batch = reader.poll(10)
>>> batch.rows.schema.names
['user_id', 'page_id', 'ad_id', 'ad_type', 'event_type', 'event_time', 'ip_address']
>>> campaigns().num_rows
1000
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....connectors.generated.numbered import NumberedRows, NumberedSource
from ....connectors.generated.random_bits import below, random_bits
from ....engine.batch import Batch

CAMPAIGNS, ADS_PER_CAMPAIGN = 100, 10
USERS, PAGES = 100, 100
AD_TYPES: Final = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES: Final = ("view", "click", "purchase")
IP_ADDRESS = "1.2.3.4"
BASE_TIME = 1_450_000_000_000
"""The first event time, in ms; a multiple of ten seconds."""

EVENTS_PER_SECOND = 10_000.0
"""Events per second of event time, unless there is a rate."""

_USER, _PAGE, _AD, _AD_TYPE, _EVENT_TYPE = range(500, 505)


def ad_events(
    *,
    events: int | None = None,
    rate: float | None = None,
    event_rate: float | None = None,
    base_time: int = BASE_TIME,
    punctual: bool = False,
    seed: int = 0,
    rows_per_batch: int = 8192,
) -> NumberedSource:
    """Return a source of `events` events, or without end; `rate` events a second, or as fast as the job takes them.

    Event time begins at `base_time` (ms since 1970) and passes 1 s per `event_rate` events (default: `rate`, else 10,000). `punctual`, with
    a rate: an event is due when the wall clock shows its event time, so that a latency is the clock's time less an event time. Columns:
    `user_id`, `page_id`, `ad_id`, `ad_type`, `event_type`, `ip_address` (strings, drawn uniformly), `event_time` (ms, UTC).
    """
    rows = AdEvents(event_rate or rate or EVENTS_PER_SECOND, base_time, seed)
    begun = base_time / 1000.0 if punctual else None
    return NumberedSource("ad-events", rows, rate, 0.001, events, rows_per_batch, False, time.time, begun)


def campaigns() -> pa.Table:
    """Return the table of advertisements: `ad_id` and `campaign_id`, strings; ten advertisements for each of a hundred campaigns."""
    ads = np.arange(CAMPAIGNS * ADS_PER_CAMPAIGN)
    return pa.table({"ad_id": _names("ad", len(ads)), "campaign_id": _names("campaign", CAMPAIGNS).take(pa.array(ads // ADS_PER_CAMPAIGN))})


@dataclass(frozen=True, slots=True)
class AdEvents(NumberedRows):
    """The events, counted 0, 1, 2 and so on."""

    event_rate: float
    base_time: int
    seed: int

    def batch(self, numbers: npt.NDArray[np.int64]) -> Batch:
        times = self._times(numbers)
        columns = {
            "user_id": self._drawn(_USER, numbers, _names("user", USERS)),
            "page_id": self._drawn(_PAGE, numbers, _names("page", PAGES)),
            "ad_id": self._drawn(_AD, numbers, _names("ad", CAMPAIGNS * ADS_PER_CAMPAIGN)),
            "ad_type": self._drawn(_AD_TYPE, numbers, pa.array(AD_TYPES)),
            "event_type": self._drawn(_EVENT_TYPE, numbers, pa.array(EVENT_TYPES)),
            "event_time": pa.array(times, pa.timestamp("ms", "UTC")),
            "ip_address": pa.repeat(IP_ADDRESS, len(numbers)),
        }
        return Batch(pa.record_batch(columns), times * 1000)

    def earliest(self, number: int) -> int:
        return int(self._times(np.array([number]))[0]) * 1000

    def _times(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self.base_time + (numbers * (1000.0 / self.event_rate)).astype(np.int64)

    def _drawn(self, purpose: int, numbers: npt.NDArray[np.int64], names: pa.Array) -> pa.Array:
        return names.take(pa.array(below(random_bits(self.seed, purpose, numbers), len(names))))


@lru_cache(maxsize=8)
def _names(kind: str, count: int) -> pa.Array:
    """Return identifiers like the benchmark's: UUIDs, the same in every run."""
    return pa.array([str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {number}")) for number in range(count)])
