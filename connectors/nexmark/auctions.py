"""NexMark's stream of auctions, and the choice of auctions that bids refer to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..generated.random_bits import Bits, below, lower, random_bits, unit
from .numbering import EPOCH, PLACES
from .people import last_person, some_person
from .settings import FIRST_ID, LEAD, PEOPLE, NexmarkSettings
from .text import RandomText

IN_FLIGHT = 100
"""The number of newest auctions to which references that are not hot go."""

FIRST_CATEGORY, CATEGORIES = 10, 5
AVERAGE_BYTES = 500
NUMBERS_BYTES = 48
"""The bytes for which the numbers and times of an auction count in its size."""

_SELLER, _CATEGORY, _FIRST_BID, _RESERVE, _NAME, _DESCRIPTION, _EXTRA = range(200, 207)
_PER_EPOCH = len(PLACES["auction"])


def columns(settings: NexmarkSettings, numbers: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    """Return the columns of the auctions with these event numbers, without their own time."""
    seller, category, first_bid, reserve, name, description, extra = (
        random_bits(settings.seed, purpose, numbers) for purpose in (_SELLER, _CATEGORY, _FIRST_BID, _RESERVE, _NAME, _DESCRIPTION, _EXTRA)
    )
    letters = RandomText(settings.seed, " ")
    item_name = pc.ascii_trim(letters.words(name, 3, 19), " ")
    text = pc.ascii_trim(letters.words(description, 3, 99), " ")
    initial_bid = prices(first_bid)
    hot = below(seller, settings.hot_seller_ratio) > 0
    hot_seller = last_person(numbers) // PEOPLE * PEOPLE
    size = NUMBERS_BYTES + pc.binary_length(item_name).to_numpy().astype(np.int64) + pc.binary_length(text).to_numpy()
    return {
        "id": pa.array(last_auction(numbers) + FIRST_ID),
        "itemName": item_name,
        "description": text,
        "initialBid": pa.array(initial_bid),
        "reserve": pa.array(initial_bid + prices(reserve)),
        "expires": pa.array(_expiry(settings, numbers, lower(category)), pa.timestamp("ms", "UTC")),
        "seller": pa.array(np.where(hot, hot_seller, some_person(lower(seller), numbers)) + FIRST_ID),
        "category": pa.array(FIRST_CATEGORY + below(category, CATEGORIES)),
        "extra": RandomText(settings.seed).padding(extra, size, AVERAGE_BYTES),
    }


def prices(bits: Bits) -> npt.NDArray[np.int64]:
    """Return prices from 100 to 100,000,000 (cents) whose logarithm is uniform."""
    return np.rint(np.power(10.0, unit(bits) * 6.0) * 100.0).astype(np.int64)


def last_auction(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of the newest auction at each event, inclusive, counted from 0; -1 before the first."""
    place = numbers % EPOCH
    return numbers // EPOCH * _PER_EPOCH + np.minimum(place, _PER_EPOCH) - 1


def some_auction(bits: Bits, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Choose one of the newest auctions at each event, or of the next `LEAD` future ones, counted from 0."""
    last = last_auction(numbers)
    first = np.maximum(last - IN_FLIGHT, 0)
    return first + below(bits, last - first + 1 + LEAD)


def _expiry(settings: NexmarkSettings, numbers: npt.NDArray[np.int64], bits: Bits) -> npt.NDArray[np.int64]:
    """Choose ends of auctions, on average after the time in which as many auctions begin as are in flight."""
    begin = settings.times(numbers)
    horizon = settings.times(numbers + IN_FLIGHT * EPOCH // _PER_EPOCH) - begin
    return begin + 1 + below(bits, np.maximum(2 * horizon, 1))
