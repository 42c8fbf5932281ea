"""NexMark's queries in SQL as flows of evenflow, the texts that Flink gets too."""

from __future__ import annotations

import re
from typing import Final

import evenflow as ef

from ...connectors.nexmark.source import STREAMS
from .flink_sql import QUERIES
from .queries.events import Events

TEXTS: Final = {
    **QUERIES,
    "q13": """
        SELECT b.auction, b.bidder, b.price, b.`dateTime`, s.`value`
        FROM bid AS b JOIN side FOR SYSTEM_TIME AS OF PROCTIME() AS s ON MOD(b.auction, 10000) = s.`key`
    """,
}
"""All queries but q6, which Flink refuses."""


def read_by(text: str) -> list[str]:
    """Return the streams that a query reads."""
    return [stream for stream in STREAMS if re.search(rf"\b(FROM|JOIN|TABLE) {stream}\b", text)]


def in_sql(query: str, events: Events) -> ef.Stream:
    """Return the rows of a query, which keeps the rows of joins without a bound of time for ever."""
    text = TEXTS[query]
    streams = {stream: getattr(events, stream) for stream in read_by(text)}
    return ef.sql(text, ttl="never", **streams, **({"side": events.side} if query == "q13" else {}))
