"""Settings that determine the rows of NexMark's streams, together with the event's number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FIRST_ID = 1000
"""The id of the first person and of the first auction, added to every reference to one."""

PEOPLE, AUCTIONS = 100, 100
"""One in so many ids is a hot seller or bidder, or a hot auction, so the hot one changes with time."""

LEAD = 10
"""The number of future ids to which references may go."""


@dataclass(frozen=True, slots=True)
class NexmarkSettings:
    """Settings of the streams. `base_time`: the time of event 0 in ms. `event_rate`: events of all streams per second of event
    time.

    All but one in `hot_..._ratio` references go to the hot seller, bidder or auction.
    """

    seed: int
    base_time: int
    event_rate: float
    hot_seller_ratio: int
    hot_auction_ratio: int
    hot_bidder_ratio: int

    def times(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the times of events in ms since 1970."""
        return self.base_time + (numbers * (1_000_000 / self.event_rate)).astype(np.int64) // 1000
