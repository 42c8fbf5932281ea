"""What the rows of NexMark's streams depend on besides the event's number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FIRST_ID = 1000
"""The id of the first person and of the first auction, and what is added to every reference to one."""

PEOPLE, AUCTIONS = 100, 100
"""Hot sellers and bidders, and hot auctions: one in so many ids, so the hot one changes with time."""

LEAD = 10
"""References go to this many ids that are not there yet."""


@dataclass(frozen=True, slots=True)
class NexmarkSettings:
    """`base_time`: the time of event 0 in ms. `event_rate`: events of all streams per second of event time.

    All but one in `hot_..._ratio` references go to the hot seller, bidder or auction.
    """

    seed: int
    base_time: int
    event_rate: float
    hot_seller_ratio: int
    hot_auction_ratio: int
    hot_bidder_ratio: int

    def times(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The times of events in ms since 1970."""
        return self.base_time + (numbers * (1_000_000 / self.event_rate)).astype(np.int64) // 1000
