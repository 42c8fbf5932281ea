"""The columns of NexMark's streams; `seq` is the event's number."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from .numbering import StreamName

_TEXT, _NUMBER, _TIME = pa.string(), pa.int64(), pa.timestamp("ms", "UTC")

SCHEMAS: Final[dict[StreamName, pa.Schema]] = {
    "person": pa.schema({
        "id": _NUMBER, "name": _TEXT, "emailAddress": _TEXT, "creditCard": _TEXT, "city": _TEXT, "state": _TEXT, "dateTime": _TIME,
        "extra": _TEXT, "seq": _NUMBER,
    }),
    "auction": pa.schema({
        "id": _NUMBER, "itemName": _TEXT, "description": _TEXT, "initialBid": _NUMBER, "reserve": _NUMBER, "dateTime": _TIME,
        "expires": _TIME, "seller": _NUMBER, "category": _NUMBER, "extra": _TEXT, "seq": _NUMBER,
    }),
    "bid": pa.schema({
        "auction": _NUMBER, "bidder": _NUMBER, "price": _NUMBER, "channel": _TEXT, "url": _TEXT, "dateTime": _TIME, "extra": _TEXT,
        "seq": _NUMBER,
    }),
}  # fmt: skip
