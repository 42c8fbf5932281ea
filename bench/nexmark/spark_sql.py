"""NexMark's queries in Spark's SQL over streams, in append mode, with the columns of `oracles`; and why the others can't be said there.

A table is a stream with a watermark on its `dateTime`. Where the original compares rows with a maximum of theirs, the rows of the maximum
are collected here: a stream of Spark's can't be joined with an aggregate of itself.
"""

from __future__ import annotations

from typing import Final

_UPDATED: Final = "its results are updated, which Spark's streams don't write in append mode"
_RANKED: Final = "Spark's streams have no row_number"

NOT_IN_SPARK: Final = {
    "q4": "Spark's streams can't average maxima that have no windows",
    "q6": _RANKED,
    "q9": _RANKED,
    "q12": "windows of the time of arrival are those of a micro-batch, and the input is one",
    "q15": _UPDATED,
    "q16": _UPDATED,
    "q17": _UPDATED,
    "q18": _RANKED,
    "q19": _RANKED,
}

UNTIL_THE_END: Final = ("q5", "q7", "q8", "q11")
"""Their last windows are open when the input ends, and Spark gives rows of closed ones only."""

_DAY = "date_format(dateTime, 'yyyy-MM-dd')"
_EURO = "CAST(0.908 AS DECIMAL(4, 3)) * CAST(price AS DECIMAL(19, 0))"
_CHANNEL = "nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')"

QUERIES: Final[dict[str, str]] = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": f"SELECT auction, bidder, {_EURO} AS price, dateTime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    "q5": """
        SELECT auction, num, w.start AS window_start FROM (
            SELECT w, num, explode(auctions) AS auction FROM (
                SELECT w, max(num) AS num, max_by(auctions, num) AS auctions FROM (
                    SELECT w, num, collect_list(auction) AS auctions FROM (
                        SELECT window(dateTime, '10 seconds', '2 seconds') AS w, auction, count(*) AS num FROM bid
                        GROUP BY window(dateTime, '10 seconds', '2 seconds'), auction
                    ) GROUP BY w, num
                ) GROUP BY w
            )
        )
    """,
    "q7": """
        SELECT b.auction, b.bidder, price, b.dateTime, b.extra, w.start AS window_start FROM (
            SELECT w, price, explode(bids) AS b FROM (
                SELECT w, max(price) AS price, max_by(bids, price) AS bids FROM (
                    SELECT window(dateTime, '10 seconds') AS w, price, collect_list(struct(auction, bidder, dateTime, extra)) AS bids
                    FROM bid GROUP BY window(dateTime, '10 seconds'), price
                ) GROUP BY w
            )
        )
    """,
    "q8": """
        SELECT p.id, p.name, p.w.start AS starttime
        FROM (SELECT id, name, window(dateTime, '10 seconds') AS w FROM person GROUP BY id, name, window(dateTime, '10 seconds')) p
        JOIN (SELECT seller, window(dateTime, '10 seconds') AS w FROM auction GROUP BY seller, window(dateTime, '10 seconds')) a
        ON p.id = a.seller AND p.w = a.w
    """,
    "q10": f"SELECT auction, bidder, price, dateTime, extra, {_DAY} AS dt, date_format(dateTime, 'HH:mm') AS hm FROM bid",
    "q11": """
        SELECT bidder, bid_count, w.start AS starttime, w.end AS endtime FROM (
            SELECT bidder, count(*) AS bid_count, session_window(dateTime, '10 seconds') AS w FROM bid
            GROUP BY bidder, session_window(dateTime, '10 seconds')
        )
    """,
    "q13": "SELECT b.auction, b.bidder, b.price, b.dateTime, side.value FROM bid b JOIN side ON b.auction % 10000 = side.key",
    "q14": f"""
        SELECT auction, bidder, {_EURO} AS price,
            CASE
                WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
            END AS bidTimeType,
            dateTime, extra, CAST(length(extra) - length(replace(extra, 'c', '')) AS BIGINT) AS c_counts
        FROM bid WHERE {_EURO} > 1000000 AND {_EURO} < 50000000
    """,
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra, a.itemName, a.description, a.initialBid, a.reserve,
            a.dateTime AS dateTime_auction, a.expires, a.seller, a.category, a.extra AS extra_auction
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
    """,
    "q21": f"""
        SELECT auction, bidder, price, channel,
            CASE lower(channel)
                WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE {_CHANNEL}
            END AS channel_id
        FROM bid WHERE {_CHANNEL} IS NOT NULL OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
    """,
    "q22": """
        SELECT auction, bidder, price, channel,
            split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
        FROM bid
    """,
}
