"""NexMark's queries over windows: Q5, Q7, Q8, Q11 and Q12."""

from __future__ import annotations

import evenflow as ef

from .events import Events


def q5(events: Events) -> ef.Stream:
    """Find the auctions with the most bids in the last ten seconds, every two seconds.

    The counts of a window have the time of its last microsecond, so a tumbling window of two seconds holds those of one sliding window.
    """
    windows = events.bid.key_by("auction").window(ef.sliding("10s", every="2s"))
    counts = windows.aggregate(num=ef.count()).named("counts").select("auction", "num", "window_start")
    hottest = counts.window(ef.tumbling("2s")).aggregate(hot=ef.top(1, by="num", ties=True)).named("hottest")
    return hottest.select("hot").explode("hot")


def q7(events: Events) -> ef.Stream:
    """Find the bids with the highest price of their ten seconds."""
    columns = ["auction", "bidder", "price", "dateTime", "extra"]
    highest = events.bid.window(ef.tumbling("10s")).aggregate(bids=ef.top(1, by="price", ties=True, columns=columns)).named("highest")
    return highest.explode("bids").select(*columns, "window_start")


def q8(events: Events) -> ef.Stream:
    """Find the people who joined the auction house and opened an auction in the same ten seconds."""
    people, sellers = events.person.select("id", "name").key_by("id"), events.auction.select("seller").key_by("seller")
    newcomers = people.join(sellers, ef.tumbling("10s"), how="semi").named("newcomers")
    return newcomers.select("id", "name", "window_start").rename(window_start="starttime")


def q11(events: Events) -> ef.Stream:
    """Count the bids of each bidder before a pause of more than ten seconds."""
    sessions = events.bid.key_by("bidder").window(ef.session("10s")).aggregate(bid_count=ef.count())
    return sessions.rename(window_start="starttime", window_end="endtime").select("bidder", "bid_count", "starttime", "endtime")


def q12(events: Events) -> ef.Stream:
    """Count the bids of each bidder that arrive in ten seconds of the machine's clock. Each run emits other rows."""
    windows = events.bid.with_arrival_time().key_by("bidder").window(ef.tumbling("10s"))
    counts = windows.aggregate(bid_count=ef.count())
    return counts.rename(window_start="starttime", window_end="endtime").select("bidder", "bid_count", "starttime", "endtime")
