"""The five queries of the price search machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

import evenflow as ef

from ....engine.time.windows import Windows
from .visits import Query, Visits


def q1(visits: Visits) -> ef.Stream:
    """Find the categories of each shop with the most clicks in ten minutes."""
    ten_minutes = ef.tumbling("10m")
    counts = visits.click.key_by("owner", "category").window(ten_minutes).aggregate(clicks=ef.count()).named("clicks-by-category")
    most = ef.top(1, by="clicks", ties=True, columns=["category", "clicks"])
    best = counts.select("owner", "category", "clicks").key_by("owner").window(ten_minutes).aggregate(best=most).named("best-categories")
    return best.explode("best").select("owner", "category", "clicks", "window_start")


def q2(visits: Visits) -> ef.Stream:
    """Compute the median price of each product's last 10,000 clicks, after every 1,000th."""
    medians = visits.click.key_by("product").window(ef.rows(10_000, every=1_000)).aggregate(median_price=ef.median("price"))
    return medians.named("medians-by-product").select("product", "median_price")


def q3(visits: Visits) -> ef.Stream:
    """Compute the median price of each shop's clicks in a minute."""
    medians = visits.click.key_by("owner").window(ef.tumbling("1m")).aggregate(median_price=ef.median("price"))
    return medians.named("medians-by-owner").select("owner", "median_price", "window_start")


def q4(visits: Visits) -> ef.Stream:
    """Compute the impressions per click of each product with clicks, over five minutes, every minute."""
    return _per_click(visits.click, visits.impression, ef.sliding("5m", every="1m"), "impressions-per-click")


def q5(visits: Visits) -> ef.Stream:
    """Compute the searches per click of each product with clicks in a minute."""
    return _per_click(visits.click, visits.search, ef.tumbling("1m"), "searches-per-click")


QUERIES: Final[dict[str, Query]] = {"q1": q1, "q2": q2, "q3": q3, "q4": q4, "q5": q5}


def _per_click(clicks: ef.Stream, others: ef.Stream, windows: Windows, name: str) -> ef.Stream:
    """Return the ratio of a product's other visits to its clicks in each window with clicks."""
    both = _marked(clicks, click=True).union(_marked(others, click=False)).named(f"clicks-and-{name}")
    is_click = ef.col("click")
    counts = both.key_by("product").window(windows).aggregate(clicks=ef.count(where=is_click), others=ef.count(where=~is_click)).named(name)
    return counts.filter(ef.col("clicks") > 0).map_batches(_ratio).select("product", "ratio", "window_start")


def _marked(stream: ef.Stream, *, click: bool) -> ef.Stream:
    return stream.select("product").map_batches(_marking(click))


def _marking(click: bool) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    return lambda rows: rows.append_column("click", pa.repeat(click, rows.num_rows))


def _ratio(counts: pa.RecordBatch) -> pa.RecordBatch:
    others, clicks = (counts[name].cast(pa.float64()) for name in ("others", "clicks"))
    return counts.append_column("ratio", pc.divide(others, clicks))
