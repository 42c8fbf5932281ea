"""Each query in DuckDB's SQL over the tables `person`, `auction`, `bid` and `side`: the final rows of a stream must equal its result.

The original is nexmark/nexmark, for Flink. It leaves open which of equal bids comes first: here the earlier, and then the one with the
smaller `seq`. A comment names the trap of a query that has one.
"""

from __future__ import annotations

from typing import Final

BIDS_WHILE_OPEN = """
    SELECT a.*, b.auction, b.bidder, b.price, b."dateTime" AS bid_dateTime, b.extra AS bid_extra, b.seq AS bid_seq
    FROM auction a JOIN bid b ON a.id = b.auction AND b."dateTime" BETWEEN a."dateTime" AND a.expires
"""
WINNERS = f"""
    SELECT * FROM ({BIDS_WHILE_OPEN}) QUALIFY row_number() OVER (PARTITION BY id ORDER BY price DESC, bid_dateTime, bid_seq) = 1
"""
COUNTS_BY_RANK = """
    count(*) AS total_bids,
    count(*) FILTER (price < 10000) AS rank1_bids,
    count(*) FILTER (price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (price >= 1000000) AS rank3_bids
"""
DISTINCT_BY_RANK = """
    count(DISTINCT bidder) AS total_bidders,
    count(DISTINCT bidder) FILTER (price < 10000) AS rank1_bidders,
    count(DISTINCT bidder) FILTER (price >= 10000 AND price < 1000000) AS rank2_bidders,
    count(DISTINCT bidder) FILTER (price >= 1000000) AS rank3_bidders,
    count(DISTINCT auction) AS total_auctions,
    count(DISTINCT auction) FILTER (price < 10000) AS rank1_auctions,
    count(DISTINCT auction) FILTER (price >= 10000 AND price < 1000000) AS rank2_auctions,
    count(DISTINCT auction) FILTER (price >= 1000000) AS rank3_auctions
"""
DAY = "strftime(\"dateTime\" AT TIME ZONE 'UTC', '%Y-%m-%d')"
MINUTE = "strftime(\"dateTime\" AT TIME ZONE 'UTC', '%H:%M')"
HOUR = "hour(\"dateTime\" AT TIME ZONE 'UTC')"
TEN_SECONDS = "time_bucket(INTERVAL 10 SECOND, \"dateTime\" AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"

ORACLES: Final[dict[str, str]] = {
    "q0": 'SELECT auction, bidder, price, "dateTime", extra FROM bid',
    "q1": 'SELECT auction, bidder, 0.908 * price AS price, "dateTime", extra FROM bid',
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    # Flink's AVG of integers is cut off; auctions without a bid are absent.
    "q4": f"""
        SELECT category AS id, (sum(final) // count(*))::BIGINT AS final
        FROM (SELECT id, category, max(price) AS final FROM ({BIDS_WHILE_OPEN}) GROUP BY id, category) GROUP BY category
    """,
    # The first windows begin before the first event.
    "q5": """
        WITH counts AS (
            SELECT auction, epoch_ms("dateTime") // 2000 * 2000 - 2000 * k AS start, count(*) AS num
            FROM bid, range(5) windows(k) GROUP BY ALL
        )
        SELECT auction, num, make_timestamptz(start * 1000) AS window_start FROM counts
        QUALIFY rank() OVER (PARTITION BY start ORDER BY num DESC) = 1
    """,
    # The original's ten rows before a winner and the winner itself are eleven, and Flink can't run it; NexMark asks for ten.
    "q6": f"""
        SELECT seller, (sum(price) OVER last_ten // count(*) OVER last_ten)::BIGINT AS avg_price FROM ({WINNERS})
        WINDOW last_ten AS (PARTITION BY seller ORDER BY bid_dateTime, bid_seq ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)
    """,
    # In the original a bid at the end of a window can match in it, too.
    "q7": f"""
        SELECT auction, bidder, price, "dateTime", extra, {TEN_SECONDS} AS window_start FROM bid
        QUALIFY rank() OVER (PARTITION BY window_start ORDER BY price DESC) = 1
    """,
    "q8": f"""
        SELECT DISTINCT p.id, p.name, p.starttime
        FROM (SELECT *, {TEN_SECONDS} AS starttime FROM person) p
        JOIN (SELECT *, {TEN_SECONDS} AS starttime FROM auction) a ON p.id = a.seller AND p.starttime = a.starttime
    """,
    "q9": f"""
        SELECT id, "itemName", description, "initialBid", reserve, "dateTime", expires, seller, category, extra,
               auction, bidder, price, bid_dateTime, bid_extra FROM ({WINNERS})
    """,
    "q10": f'SELECT auction, bidder, price, "dateTime", extra, {DAY} AS dt, {MINUTE} AS hm FROM bid',
    # Rows exactly ten seconds apart are in one session, which ends ten seconds after its last row.
    "q11": """
        WITH marked AS (
            SELECT bidder, "dateTime", seq,
                CASE WHEN "dateTime" - lag("dateTime") OVER (PARTITION BY bidder ORDER BY "dateTime", seq) <= INTERVAL 10 SECOND
                THEN 0 ELSE 1 END AS begins
            FROM bid
        ), numbered AS (
            SELECT *, sum(begins) OVER (PARTITION BY bidder ORDER BY "dateTime", seq ROWS UNBOUNDED PRECEDING) AS session FROM marked
        )
        SELECT bidder, count(*) AS bid_count, min("dateTime") AS starttime, max("dateTime") + INTERVAL 10 SECOND AS endtime
        FROM numbered GROUP BY bidder, session
    """,
    # Windows are those of the machine's clock, so only the number of bids of each bidder can be compared.
    "q12": "SELECT bidder, count(*) AS bid_count FROM bid GROUP BY bidder",
    "q13": 'SELECT auction, bidder, price, "dateTime", side.value FROM bid JOIN side ON auction % 10000 = side.key',
    "q14": f"""
        SELECT auction, bidder, 0.908 * price AS price,
            CASE WHEN {HOUR} BETWEEN 8 AND 18 THEN 'dayTime' WHEN {HOUR} <= 6 OR {HOUR} >= 20 THEN 'nightTime' ELSE 'otherTime' END
                AS "bidTimeType",
            "dateTime", extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    "q15": f"SELECT {DAY} AS day, {COUNTS_BY_RANK}, {DISTINCT_BY_RANK} FROM bid GROUP BY day",
    "q16": f"""
        SELECT channel, {DAY} AS day, max({MINUTE}) AS minute, {COUNTS_BY_RANK}, {DISTINCT_BY_RANK} FROM bid GROUP BY channel, day
    """,
    "q17": f"""
        SELECT auction, {DAY} AS day, {COUNTS_BY_RANK}, min(price) AS min_price, max(price) AS max_price,
            (sum(price) // count(*))::BIGINT AS avg_price, sum(price)::BIGINT AS sum_price
        FROM bid GROUP BY auction, day
    """,
    "q18": """
        SELECT auction, bidder, price, channel, url, "dateTime", extra FROM bid
        QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY "dateTime" DESC, seq DESC) = 1
    """,
    "q19": """
        SELECT auction, bidder, price, channel, url, "dateTime", extra,
            row_number() OVER (PARTITION BY auction ORDER BY price DESC, "dateTime", seq) AS rank_number
        FROM bid QUALIFY rank_number <= 10
    """,
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b."dateTime", b.extra, a."itemName", a.description, a."initialBid",
            a.reserve, a."dateTime" AS "dateTime_auction", a.expires, a.seller, a.category, a.extra AS extra_auction
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
    """,
    # Flink gives NULL where the expression doesn't match, DuckDB an empty text.
    "q21": r"""
        SELECT auction, bidder, price, channel,
            CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
            ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') END AS channel_id
        FROM bid WHERE channel_id IS NOT NULL
    """,
    # DuckDB counts the parts from 1.
    "q22": """
        SELECT auction, bidder, price, channel,
            split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3 FROM bid
    """,
}
"""The SQL of each query, by name."""

UPDATED: Final[dict[str, tuple[str, ...]]] = {
    "q4": ("id",),
    "q9": ("id",),
    "q15": ("day",),
    "q16": ("channel", "day"),
    "q17": ("auction", "day"),
    "q18": ("auction", "bidder"),
    "q19": ("auction", "rank_number"),
}
"""The keys of queries that update their results: the last row of a key counts."""

_WITH_SEQ = """
    SELECT * FROM (
        SELECT found.*, bid.seq FROM ({{found}}) found LEFT JOIN bid
        ON found.auction = bid.auction AND found.bidder = bid.bidder AND found.price = bid.price
        AND found.{time} = bid."dateTime" AND found.{extra} = bid.extra
    ) QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {best}) = 1
"""
PROGRESS: Final[dict[str, str]] = {
    "q4": """
        SELECT category AS id, (total // auctions)::BIGINT AS final FROM ({found})
        QUALIFY row_number() OVER (PARTITION BY category ORDER BY auctions DESC, total DESC) = 1
    """,
    "q9": _WITH_SEQ.format(time="bid_dateTime", extra="bid_extra", key="id", best="price DESC, bid_dateTime, seq"),
    "q15": "SELECT * FROM ({found}) QUALIFY row_number() OVER (PARTITION BY day ORDER BY total_bids DESC) = 1",
    "q16": "SELECT * FROM ({found}) QUALIFY row_number() OVER (PARTITION BY channel, day ORDER BY total_bids DESC) = 1",
    "q17": "SELECT * FROM ({found}) QUALIFY row_number() OVER (PARTITION BY auction, day ORDER BY total_bids DESC) = 1",
    "q18": _WITH_SEQ.format(time='"dateTime"', extra="extra", key="auction, bidder", best='"dateTime" DESC, seq DESC'),
    "q19": _WITH_SEQ.format(time='"dateTime"', extra="extra", key="auction, rank_number", best='price DESC, "dateTime", seq'),
}
"""SQL for the final rows of a query `{found}` that updates its results, in any order; columns that only grow tell the final ones."""
