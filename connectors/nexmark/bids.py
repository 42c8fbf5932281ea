"""NexMark's stream of bids."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..generated.random_bits import below, lower, random_bits
from .auctions import last_auction, prices, some_auction
from .people import last_person, some_person
from .settings import AUCTIONS, FIRST_ID, PEOPLE, NexmarkSettings
from .text import RandomText

AVERAGE_BYTES = 100
NUMBERS_BYTES = 32
"""The bytes for which the numbers and the time of a bid count in its size; the original excludes channel and url."""

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
_AUCTION, _BIDDER, _PRICE, _CHANNEL, _EXTRA, _URL, _PARAMETER, _PADDING = range(300, 308)
_PADDINGS = 1 << 14
"""The number of strings that pad bids: together about as long as the text from which they are cut."""


def columns(settings: NexmarkSettings, numbers: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    """Return the columns of the bids with these event numbers, without their times."""
    auction, bidder, price, channel = (random_bits(settings.seed, purpose, numbers) for purpose in (_AUCTION, _BIDDER, _PRICE, _CHANNEL))
    hot_auction = last_auction(numbers) // AUCTIONS * AUCTIONS
    # The second person of the hundred, so that the hot bidder is no hot seller.
    hot_bidder = last_person(numbers) // PEOPLE * PEOPLE + 1
    to_hot, by_hot = below(auction, settings.hot_auction_ratio) > 0, below(bidder, settings.hot_bidder_ratio) > 0
    names, urls, paddings = _tables(settings.seed)
    return {
        "auction": pa.array(np.where(to_hot, hot_auction, some_auction(lower(auction), numbers)) + FIRST_ID),
        "bidder": pa.array(np.where(by_hot, hot_bidder, some_person(lower(bidder), numbers)) + FIRST_ID),
        "price": pa.array(prices(price)),
        **_channels(names, urls, channel),
        "extra": paddings.take(pa.array(below(random_bits(settings.seed, _EXTRA, numbers), _PADDINGS))),
    }


def _channels(names: pa.Array, urls: pa.Array, bits: npt.NDArray[np.uint64]) -> dict[str, pa.Array]:
    """Choose the channels of bids: half of the bids arrive by a hot channel, the others by one of ten thousand."""
    hot = below(bits, 2) > 0
    place = pa.array(np.where(hot, below(lower(bits), len(HOT_CHANNELS)), len(HOT_CHANNELS) + below(lower(bits), CHANNELS)))
    return {"channel": names.take(place), "url": urls.take(place)}


@lru_cache(maxsize=4)
def _tables(seed: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Build names and urls of all channels, the hot ones first, and the paddings."""
    number = np.arange(CHANNELS)
    names = pa.array([*HOT_CHANNELS, *(f"channel-{n}" for n in range(CHANNELS))])
    every = np.arange(len(names))
    letters = RandomText(seed, "_")
    folders = [letters.words(random_bits(seed, _URL, every + len(every) * part), 3, 4) for part in range(3)]
    urls = pc.binary_join_element_wise("https://www.nexmark.com", *folders, "item.htm?query=1", "/")
    with_id = np.concatenate([np.zeros(len(HOT_CHANNELS), np.bool_), below(random_bits(seed, _PARAMETER, number), 10) > 0])
    ids = np.concatenate([np.zeros(len(HOT_CHANNELS), np.int32), np.abs(_reversed(number))])
    longer = pc.binary_join_element_wise(urls, pc.cast(pa.array(ids), pa.string()), "&channel_id=")
    bits = random_bits(seed, _PADDING, np.arange(_PADDINGS))
    paddings = RandomText(seed).padding(bits, np.full(_PADDINGS, NUMBERS_BYTES), AVERAGE_BYTES)
    return names, pc.if_else(pa.array(with_id), longer, urls), paddings


def _reversed(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Reverse the 32 bits of each number."""
    bits = np.unpackbits(numbers.astype("<u4").view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return np.packbits(bits, axis=1, bitorder="big").view(">i4").astype(np.int32).ravel()
