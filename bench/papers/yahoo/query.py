"""The query of the Yahoo streaming benchmark."""

from __future__ import annotations

import time

import pyarrow as pa

import evenflow as ef

from .events import campaigns


def views_by_campaign(events: ef.Stream) -> ef.Stream:
    """Count the views of each campaign's advertisements in ten seconds: `campaign_id`, `views`, `window_start`."""
    views = events.filter(ef.col("event_type") == "view").select("ad_id", "event_time")
    joined = views.lookup(campaigns(), on="ad_id", how="inner", unique=True)
    counts = joined.key_by("campaign_id").window(ef.tumbling("10s")).aggregate(views=ef.count()).named("views-by-campaign")
    return counts.select("campaign_id", "views", "window_start")


def stamped(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Add the time at which the rows are written (ns, wall clock)."""
    return rows.append_column("written", pa.repeat(time.time_ns(), rows.num_rows))
