"""NexMark's queries that join two streams without windows: Q3, Q4, Q6, Q9 and Q20."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import evenflow as ef

from .events import Events

AUCTION = ("id", "itemName", "description", "initialBid", "reserve", "dateTime", "expires", "seller", "category", "extra")
BID = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
BEST = [("price", "descending"), ("bid_dateTime", "ascending"), ("bid_seq", "ascending")]
"""The order of an auction's bids: the first one wins."""


def q3(events: Events) -> ef.Stream:
    """Find the sellers in category 10 who live in Oregon, Idaho or California."""
    people = events.person.filter(ef.col("state").is_in(["OR", "ID", "CA"])).select("id", "name", "city", "state").rename(id="person")
    auctions = events.auction.filter(ef.col("category") == 10).select("id", "seller")
    return auctions.key_by("seller").join(people.key_by("person"), ef.always()).named("sellers").select("name", "city", "state", "id")


def q4(events: Events) -> ef.Stream:
    """Compute the average winning price of each category's auctions, cut off. Updated; the last row of a category counts.

    An auction's highest price so far only rises, so a category's total is the sum of all rises. Prices are above zero.
    """

    def rises(state: dict[str, Any], bids: Any) -> Any:
        highest = np.maximum(state["highest"], np.maximum.reduceat(bids["price"], bids.starts))
        rise, first = highest - state["highest"], (state["highest"] == 0).astype(np.int64)
        return {"highest": highest}, bids.where(bids.is_last, rise=bids.spread(rise), auctions=bids.spread(first))

    def average(totals: pa.RecordBatch) -> dict[str, Any]:
        return {"id": totals["category"], "final": pc.divide(totals["total"], totals["auctions"])}

    bids = _valid_bids(events, auction=("id", "category"), bid=()).key_by("auction")
    rising = bids.stateful_map_columns(rises, state={"highest": "int64"}, columns=("category", "price")).named("rises")
    totals = rising.key_by("category").aggregate(total=ef.sum("rise"), auctions=ef.sum("auctions")).named("totals")
    return totals.map_batches(average)


def q6(events: Events) -> ef.Stream:
    """Compute the average price, cut off, of each seller's last ten sold auctions, for each of them.

    They are ordered by the time of the winning bid. A bid of any age may win until all auctions are over, so it emits at the end.
    """
    won = _valid_bids(events, auction=("id", "seller"), bid=()).key_by("auction", "seller")
    winners = won.aggregate(emit="final", best=ef.top(1, by=BEST)).explode("best").named("winners")
    in_order = [("bid_dateTime", "ascending"), ("bid_seq", "ascending")]
    sold = winners.key_by("seller").aggregate(emit="final", sold=ef.top(MANY, by=in_order, columns=["price"])).named("sold")
    last = sold.explode("sold").key_by("seller").window(ef.rows(10, every=1)).aggregate(total=ef.sum("price"), n=ef.count())

    def average(totals: pa.RecordBatch) -> dict[str, Any]:
        return {"seller": totals["seller"], "avg_price": pc.divide(totals["total"], totals["n"])}

    return last.map_batches(average)


MANY = 1_000_000_000
"""More auctions than a seller has."""


def q9(events: Events) -> ef.Stream:
    """Find the winning bid of each auction. Updated; the last row of an auction counts."""
    bids = _valid_bids(events, auction=AUCTION, bid=("bidder", "bid_extra"))
    winners = bids.key_by("auction").aggregate(winner=ef.top(1, by=BEST)).named("winners")
    return winners.explode("winner").select(*AUCTION, "auction", "bidder", "price", "bid_dateTime", "bid_extra")


def q20(events: Events) -> ef.Stream:
    """Join the bids in auctions of category 10 with the auction."""
    bids = events.bid.select(*BID).key_by("auction")
    auctions = events.auction.filter(ef.col("category") == 10).select(*AUCTION).key_by("id")
    return bids.join(auctions, ef.always(), suffix="_auction").named("bids-of-category-10").drop("id")


def _valid_bids(events: Events, *, auction: tuple[str, ...], bid: tuple[str, ...]) -> ef.Stream:
    """Return the bids made while their auction was open, with these columns of the auction and the bid.

    They also have `expires` of the auction, and `auction`, `price`, `bid_dateTime` and `bid_seq` of the bid.
    """
    bids = events.bid.rename(dateTime="bid_dateTime", extra="bid_extra", seq="bid_seq")
    keyed = bids.select("auction", "price", "bid_dateTime", "bid_seq", *bid).key_by("auction")
    auctions = events.auction.select(*dict.fromkeys((*auction, "expires"))).key_by("id")
    return auctions.join(keyed, ef.between(0, "expires")).named("valid-bids")
