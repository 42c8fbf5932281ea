"""The numbering of NexMark's events: which are people, auctions and bids, and their order.

The first of 50 consecutive events is a person, the next three are auctions, and 46 are bids. Events arrive in the order of their
*positions* 0, 1, 2 and so on. The event at a position has the same *number*, unless events are out of order: then those of each
group are permuted. Everything about an event is a function of its number.

>>> bids = Numbering("bid")
>>> bids.rows_before(150), bids.numbers(np.array([0, 45, 46])).tolist()
(138, [4, 49, 54])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lcm
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

EPOCH = 50
"""The number of events after which the kinds repeat."""

StreamName = Literal["person", "auction", "bid"]

PLACES: Final[dict[StreamName, range]] = {"person": range(1), "auction": range(1, 4), "bid": range(4, EPOCH)}
"""The places of a stream's events in an epoch."""

STRIDE = 953
"""The stride of permuted events: the event at position `p` of a group has the number `p * STRIDE mod group`."""

LARGEST_GROUP = 10_000

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Numbering:
    """The order of one stream's events, whose rows are counted 0, 1, 2 and so on as they arrive.

    `group`: how many consecutive events are permuted; 1 for none, at most `LARGEST_GROUP`, and no multiple of `STRIDE`.
    """

    stream: StreamName
    group: int = 1

    def numbers(self, rows: Numbers) -> Numbers:
        """Return the event numbers of `rows`, with its shape."""
        period, _, numbers = _period(self.stream, self.group)
        return rows // len(numbers) * period + numbers[rows % len(numbers)]

    def position(self, row: int) -> int:
        """Return the position of a row among all events."""
        period, positions, _ = _period(self.stream, self.group)
        return row // len(positions) * period + int(positions[row % len(positions)])

    def rows_before(self, position: int) -> int:
        """Return the number of rows among the first `position` events."""
        period, positions, _ = _period(self.stream, self.group)
        return position // period * len(positions) + int(np.searchsorted(positions, position % period))

    def least_number(self, row: int) -> int:
        """Return a lower bound of the event numbers of `row` and all later rows: the first one of its group."""
        return self.position(row) // self.group * self.group


@lru_cache(maxsize=16)
def _period(stream: StreamName, group: int) -> tuple[int, Numbers, Numbers]:
    """Return the number of events after which kinds and order repeat; a stream's positions in them, ascending; and their event
    numbers.
    """
    period = lcm(EPOCH, group)
    position = np.arange(period)
    number = position // group * group + position * STRIDE % group
    place = number % EPOCH
    places = PLACES[stream]
    ours = (places.start <= place) & (place < places.stop)
    return period, position[ours], number[ours]
