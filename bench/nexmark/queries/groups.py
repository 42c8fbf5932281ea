"""NexMark's queries over groups of all bids so far, Q15 to Q19. They update their results: the last row of a key counts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import evenflow as ef

from .columns import day, minute
from .events import Events

PRICE = ef.col("price")
RANKS = {"rank1": PRICE < 10_000, "rank2": (PRICE >= 10_000) & (PRICE < 1_000_000), "rank3": PRICE >= 1_000_000}
"""The three ranks of prices, of about the same number of bids."""


def q15(events: Events) -> ef.Stream:
    """Count the bids, bidders and auctions of each day, in all and for each rank of prices."""
    return _dated(events.bid, "auction", "bidder", "price").key_by("day").aggregate(**_bids(), **_distinct())


def q16(events: Events) -> ef.Stream:
    """Count the bids, bidders and auctions of each channel and day, and find the minute of the last bid."""
    columns = ["total_bids", "total_bidders", "total_auctions"]
    names = [name.replace("total", rank) for name in columns for rank in ("total", *RANKS)]

    def with_minute(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.append_column("minute", minute(rows["dateTime"]))

    counts = (
        _dated(events.bid, "auction", "bidder", "price", "channel")
        .map_batches(with_minute)
        .key_by("channel", "day")
        .aggregate(minute=ef.max("minute"), **_bids(), **_distinct())
    )
    return counts.select("channel", "day", "minute", *names)


def q17(events: Events) -> ef.Stream:
    """Count the bids of each auction and day, with their lowest, highest, average (cut off) and total prices."""
    prices: dict[str, Any] = {"min_price": ef.min("price"), "max_price": ef.max("price"), "sum_price": ef.sum("price")}

    def with_average(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.append_column("avg_price", pc.divide(rows["sum_price"], rows["total_bids"]))

    return _dated(events.bid, "auction", "price").key_by("auction", "day").aggregate(**_bids(), **prices).map_batches(with_average)


def q18(events: Events) -> ef.Stream:
    """Find each bidder's last bid in each auction."""
    newest = ef.top(1, by=[("dateTime", "descending"), ("seq", "descending")])
    last = events.bid.key_by("bidder", "auction").aggregate(bid=newest).named("last-bids")
    return last.explode("bid").select("auction", "bidder", "price", "channel", "url", "dateTime", "extra")


def q19(events: Events) -> ef.Stream:
    """Find the ten highest bids of each auction."""
    highest = ef.top(10, by=[("price", "descending"), ("dateTime", "ascending"), ("seq", "ascending")])
    best = events.bid.key_by("auction").aggregate(bids=highest).named("best-bids")
    ranked = best.explode("bids", position="rank_number")
    return ranked.select("auction", "bidder", "price", "channel", "url", "dateTime", "extra", "rank_number")


def _dated(bids: ef.Stream, *columns: str) -> ef.Stream:
    def dated(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.append_column("day", day(rows["dateTime"]))

    return bids.select(*columns, "dateTime").map_batches(dated)


def _bids() -> dict[str, Any]:
    return {"total_bids": ef.count(), **{f"{rank}_bids": ef.count(where=where) for rank, where in RANKS.items()}}


def _distinct() -> dict[str, Any]:
    aggregates: dict[str, Any] = {}
    for name in ("bidder", "auction"):
        aggregates[f"total_{name}s"] = ef.count_distinct(name)
        aggregates |= {f"{rank}_{name}s": ef.count_distinct(name, where=where) for rank, where in RANKS.items()}
    return aggregates
