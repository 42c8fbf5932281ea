"""Which events of NexMark are people, auctions and bids, and in which order they come.

Of 50 events in a row the first is a person, the next three are auctions, and 46 are bids. Events come in the order of their *positions*
0, 1, 2 and so on. The event at a position has the same *number*, unless events are out of order: then those of each group are permuted.
Everything about an event is a function of its number.

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
"""Events after which the kinds repeat."""

StreamName = Literal["person", "auction", "bid"]

PLACES: Final[dict[StreamName, range]] = {"person": range(1), "auction": range(1, 4), "bid": range(4, EPOCH)}
"""Where in an epoch the events of a stream are."""

STRIDE = 953
"""Within a group of events out of order, the one at position `p` has the number `p * STRIDE mod group`."""

LARGEST_GROUP = 10_000

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Numbering:
    """The events of one stream, whose rows are counted 0, 1, 2 and so on in the order in which they come.

    `group`: how many events are out of order among themselves; 1 for none, at most `LARGEST_GROUP`, and no multiple of `STRIDE`.
    """

    stream: StreamName
    group: int = 1

    def numbers(self, rows: Numbers) -> Numbers:
        """The event numbers of `rows`, of its shape."""
        period, _, numbers = _period(self.stream, self.group)
        return rows // len(numbers) * period + numbers[rows % len(numbers)]

    def position(self, row: int) -> int:
        """The position of a row among all events."""
        period, positions, _ = _period(self.stream, self.group)
        return row // len(positions) * period + int(positions[row % len(positions)])

    def rows_before(self, position: int) -> int:
        """The number of rows among the first `position` events."""
        period, positions, _ = _period(self.stream, self.group)
        return position // period * len(positions) + int(np.searchsorted(positions, position % period))

    def least_number(self, row: int) -> int:
        """No row from `row` on has a smaller event number than this: its group's first one."""
        return self.position(row) // self.group * self.group


@lru_cache(maxsize=16)
def _period(stream: StreamName, group: int) -> tuple[int, Numbers, Numbers]:
    """The events after which kinds and order repeat; the positions of a stream's rows in them, ascending; and their event numbers."""
    period = lcm(EPOCH, group)
    position = np.arange(period)
    number = position // group * group + position * STRIDE % group
    place = number % EPOCH
    places = PLACES[stream]
    ours = (places.start <= place) & (place < places.stop)
    return period, position[ours], number[ours]
