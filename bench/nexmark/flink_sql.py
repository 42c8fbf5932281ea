"""NexMark's tables and queries in Flink's SQL.

The queries are those of https://github.com/nexmark/nexmark, with the columns of `oracles`. Two cases are defined that the original leaves
open: equal bids are ordered by `seq` where the order of arrival does not decide, and a bid at the end of a window is not in it (Q7).
"""

from __future__ import annotations

from typing import Final

from ...connectors.nexmark.numbering import StreamName
from ...connectors.nexmark.source import STREAMS
from .data import CSV_SCHEMAS

FOLDER: Final = "FOLDER"
"""The placeholder in `TABLES` for the folder of the CSV files."""

SETTINGS: Final = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
}
"""Flink's settings. The last four are those of the original's published runs."""

NOT_IN_FLINK: Final = {
    "q6": "Flink refuses an OVER window over rows that are updated",
    "q13": "no connector of Flink's own looks rows up in a file",
}

_TYPES = {"int64": "BIGINT", "string": "STRING"}


def _table(stream: StreamName) -> str:
    times = [name for name in ("dateTime", "expires") if name in CSV_SCHEMAS[stream].names]
    fields = [f"`{f.name}{'_ms' if f.name in times else ''}` {_TYPES[str(f.type)]}" for f in CSV_SCHEMAS[stream]]
    made = [f"`{name}` AS CAST(TO_TIMESTAMP_LTZ(`{name}_ms`, 3) AS TIMESTAMP(3))" for name in times]
    columns = ", ".join([*fields, *made, "WATERMARK FOR `dateTime` AS `dateTime`"])
    return f"CREATE TABLE {stream} ({columns}) WITH ('connector'='filesystem', 'path'='{FOLDER}/{stream}', 'format'='csv')"


TABLES: Final = tuple(_table(stream) for stream in STREAMS)

_RANKS = """
    COUNT(*) AS total_bids,
    COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
    COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids
"""
_DISTINCT = """
    COUNT(DISTINCT bidder) AS total_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
    COUNT(DISTINCT auction) AS total_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
"""
_DAY = "DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')"
_MINUTE = "DATE_FORMAT(`dateTime`, 'HH:mm')"
_WHILE_OPEN = "auction a JOIN bid b ON a.id = b.auction AND b.`dateTime` BETWEEN a.`dateTime` AND a.expires"
_COUNTS = """
    SELECT auction, COUNT(*) AS num, window_start, window_end
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
"""
_TEN_SECONDS = "DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND"

QUERIES: Final[dict[str, str]] = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    "q4": f"""
        SELECT category AS id, AVG(highest) AS final
        FROM (SELECT a.category, MAX(b.price) AS highest FROM {_WHILE_OPEN} GROUP BY a.id, a.category) GROUP BY category
    """,
    "q5": f"""
        SELECT c.auction, c.num, c.window_start FROM ({_COUNTS}) c
        JOIN (SELECT MAX(num) AS most, window_start, window_end FROM ({_COUNTS}) GROUP BY window_start, window_end) m
        ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.most
    """,
    "q7": f"""
        SELECT b.auction, b.bidder, b.price, b.`dateTime`, b.extra, m.begins FROM bid b
        JOIN (
            SELECT MAX(price) AS highest, window_start AS begins, window_end AS ends
            FROM TABLE(TUMBLE(TABLE bid, {_TEN_SECONDS})) GROUP BY window_start, window_end
        ) m ON b.price = m.highest WHERE b.`dateTime` >= m.begins AND b.`dateTime` < m.ends
    """,
    "q8": f"""
        SELECT p.id, p.name, p.window_start
        FROM (
            SELECT id, name, window_start, window_end FROM TABLE(TUMBLE(TABLE person, {_TEN_SECONDS}))
            GROUP BY id, name, window_start, window_end
        ) p JOIN (
            SELECT seller, window_start, window_end FROM TABLE(TUMBLE(TABLE auction, {_TEN_SECONDS}))
            GROUP BY seller, window_start, window_end
        ) s ON p.id = s.seller AND p.window_start = s.window_start AND p.window_end = s.window_end
    """,
    "q9": f"""
        SELECT id, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra,
            auction, bidder, price, bid_dateTime, bid_extra
        FROM (
            SELECT a.id, a.itemName, a.description, a.initialBid, a.reserve, a.`dateTime`, a.expires, a.seller, a.category, a.extra,
                b.auction, b.bidder, b.price, b.`dateTime` AS bid_dateTime, b.extra AS bid_extra,
                ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.`dateTime`, b.seq) AS place
            FROM {_WHILE_OPEN}
        ) WHERE place <= 1
    """,
    "q10": f"SELECT auction, bidder, price, `dateTime`, extra, {_DAY} AS dt, {_MINUTE} AS hm FROM bid",
    "q11": """
        SELECT bidder, COUNT(*) AS bid_count, window_start, window_end
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end
    """,
    "q12": """
        SELECT bidder, COUNT(*) AS bid_count
        FROM TABLE(TUMBLE((SELECT bidder, PROCTIME() AS arrived FROM bid), DESCRIPTOR(arrived), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end
    """,
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price,
            CASE
                WHEN HOUR(`dateTime`) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
            END AS bidTimeType,
            `dateTime`, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    "q15": f"SELECT {_DAY} AS `day`, {_RANKS}, {_DISTINCT} FROM bid GROUP BY {_DAY}",
    "q16": f"SELECT channel, {_DAY} AS `day`, MAX({_MINUTE}) AS `minute`, {_RANKS}, {_DISTINCT} FROM bid GROUP BY channel, {_DAY}",
    "q17": f"""
        SELECT auction, {_DAY} AS `day`, {_RANKS}, MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price,
            SUM(price) AS sum_price
        FROM bid GROUP BY auction, {_DAY}
    """,
    "q18": """
        SELECT auction, bidder, price, channel, url, `dateTime`, extra
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS place FROM bid) WHERE place <= 1
    """,
    "q19": """
        SELECT auction, bidder, price, channel, url, `dateTime`, extra, rank_number
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, seq) AS rank_number FROM bid) WHERE rank_number <= 10
    """,
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.`dateTime`, b.extra, a.itemName, a.description, a.initialBid, a.reserve,
            a.`dateTime` AS auction_dateTime, a.expires, a.seller, a.category, a.extra AS auction_extra
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
    """,
    "q21": """
        SELECT auction, bidder, price, channel,
            CASE LOWER(channel)
                WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
            END AS channel_id
        FROM bid
        WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')
    """,
    "q22": """
        SELECT auction, bidder, price, channel,
            SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3
        FROM bid
    """,
}
