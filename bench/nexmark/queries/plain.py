"""NexMark's queries over single bids: Q0 to Q2, Q10, Q13, Q14, Q21 and Q22."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

import evenflow as ef

from .columns import day, euros, minute
from .events import SIDE_ROWS, Events

BID = ("auction", "bidder", "price", "dateTime", "extra")
BID_IN_WEB = ("auction", "bidder", "price", "channel", "url")
"""The columns that are selected before a function, so that the source reads no others."""


def q0(events: Events) -> ef.Stream:
    """Pass every bid on unchanged."""
    return events.bid.select(*BID)


def q1(events: Events) -> ef.Stream:
    """Convert the price of each bid to euros."""

    def in_euros(bids: pa.RecordBatch) -> pa.RecordBatch:
        return bids.drop_columns("price").append_column("price", euros(bids["price"]))

    return events.bid.select(*BID).map_batches(in_euros).select(*BID)


def q2(events: Events) -> ef.Stream:
    """Select the bids for every 123rd auction."""
    return events.bid.filter(ef.col("auction") % 123 == 0).select("auction", "price")


def q10(events: Events) -> ef.Stream:
    """Add the day and the minute of each bid.

    The original writes them into a folder for each day and minute. evenflow's CSV files hold both as columns: a sink has one folder.
    """

    def dated(bids: pa.RecordBatch) -> pa.RecordBatch:
        return bids.append_column("dt", day(bids["dateTime"])).append_column("hm", minute(bids["dateTime"]))

    return events.bid.select(*BID).map_batches(dated).select(*BID, "dt", "hm")


def q13(events: Events) -> ef.Stream:
    """Look up the auction of each bid in a table."""

    def with_key(bids: pa.RecordBatch) -> pa.RecordBatch:
        return bids.append_column("key", pa.array(bids["auction"].to_numpy() % SIDE_ROWS))

    found = events.bid.select(*BID).map_batches(with_key).lookup(events.side, on="key", how="inner")
    return found.select("auction", "bidder", "price", "dateTime", "value")


def q14(events: Events) -> ef.Stream:
    """Select bids between 1 and 50 million euros; add if they were made by day or by night, and the number of "c" in their text."""

    def described(bids: pa.RecordBatch) -> pa.RecordBatch:
        hour = pc.hour(bids["dateTime"])
        by_day = pc.and_(pc.greater_equal(hour, 8), pc.less_equal(hour, 18))
        by_night = pc.or_(pc.less_equal(hour, 6), pc.greater_equal(hour, 20))
        kind = pc.case_when(pc.make_struct(by_day, by_night), "dayTime", "nightTime", "otherTime")
        count = pc.count_substring(bids["extra"], "c").cast(pa.int64())
        priced = bids.drop_columns("price").append_column("price", euros(bids["price"]))
        return priced.append_column("bidTimeType", kind).append_column("c_counts", count)

    thousandths = ef.col("price") * 908
    dear = events.bid.select(*BID).filter((thousandths > 1_000_000_000) & (thousandths < 50_000_000_000))
    return dear.map_batches(described).select("auction", "bidder", "price", "bidTimeType", "dateTime", "extra", "c_counts")


CHANNELS = pa.array(["apple", "google", "facebook", "baidu"])


def q21(events: Events) -> ef.Stream:
    """Find the number of each bid's channel: of four large channels, or in the URL. Bids without a number are dropped."""

    def with_channel(bids: pa.RecordBatch) -> pa.RecordBatch:
        large = pc.index_in(pc.utf8_lower(bids["channel"]), CHANNELS).cast(pa.string())
        in_url = pc.struct_field(pc.extract_regex(bids["url"], r"(?:&|^)channel_id=(?P<id>[^&]*)"), "id")
        return bids.append_column("channel_id", pc.coalesce(large, in_url))

    known = events.bid.select(*BID_IN_WEB).map_batches(with_channel).filter(ef.col("channel_id").is_not_null())
    return known.select("auction", "bidder", "price", "channel", "channel_id")


def q22(events: Events) -> ef.Stream:
    """Split the URL of each bid into folders. A channel has one URL, so each is split once."""

    def with_folders(bids: pa.RecordBatch) -> pa.RecordBatch:
        urls = bids["url"].dictionary_encode()
        folders = pc.list_slice(pc.split_pattern(urls.dictionary, "/"), 3, 6, return_fixed_size_list=True)
        for place in range(3):
            bids = bids.append_column(f"dir{place + 1}", pc.list_element(folders, place).take(urls.indices))
        return bids

    return events.bid.select(*BID_IN_WEB).map_batches(with_folders).select("auction", "bidder", "price", "channel", "dir1", "dir2", "dir3")
