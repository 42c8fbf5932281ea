"""Queries of the NexMark benchmark and similar ones, compared with DuckDB's SQL over the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.testing import simulate
from evenflow.testing.comparison import row_differences

duckdb = pytest.importorskip("duckdb")

DAY = 86_400_000
N = 400


def make_bids() -> pa.Table:
    """Return bids with ties in price and time, and a few nulls."""
    random = np.random.default_rng(7)
    price = np.round(100 * 10 ** (6 * random.random(N))).astype(np.int64) // 5_000 * 5_000
    return pa.table({
        "auction": random.integers(1000, 1006, N), "bidder": random.integers(1000, 1040, N),
        "price": pa.array(price, mask=random.random(N) < 0.02), "ts": np.sort(random.integers(0, 3 * DAY, N)) // 1_000 * 1_000,
        "seq": np.arange(N),
    })  # fmt: skip


BIDS = make_bids()
QUIET = ef.JobConfig(checkpoint=ef.CheckpointConfig(interval=None))


def sql(query: str) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        connection.register("bid", BIDS)
        rows: list[dict[str, Any]] = connection.sql(query).to_arrow_table().to_pylist()
        return rows


def run(build: Any) -> list[dict[str, Any]]:
    flow = ef.Dataflow("query")
    build(flow.read(ef.from_items(BIDS.to_pylist(), event_time="ts", unit="ms"))).write(ef.to_list([]))
    return simulate(flow, 1, parallelism=2, config=QUIET).rows["to_list"]


def same(build: Any, query: str) -> None:
    rows = run(build)
    assert rows
    assert row_differences(rows, sql(query)) == []


def test_q15_counts_by_rank_and_distinct_bidders_and_auctions_per_day():
    low, middle, high = (
        ef.col("price") < 10_000,
        (ef.col("price") >= 10_000) & (ef.col("price") < 1_000_000),
        ef.col("price") >= 1_000_000,
    )
    aggregates = {"total": ef.count(), "bidders": ef.count_distinct("bidder"), "auctions": ef.count_distinct("auction")}
    for rank, where in (("low", low), ("middle", middle), ("high", high)):
        aggregates[f"{rank}_bids"] = ef.count(where=where)
        aggregates[f"{rank}_bidders"] = ef.count_distinct("bidder", where=where)
        aggregates[f"{rank}_auctions"] = ef.count_distinct("auction", where=where)
    ranks = {"low": "price < 10000", "middle": "price >= 10000 AND price < 1000000", "high": "price >= 1000000"}
    filtered = ", ".join(
        f"count(*) FILTER ({where}) AS {rank}_bids, count(DISTINCT bidder) FILTER ({where}) AS {rank}_bidders, "
        f"count(DISTINCT auction) FILTER ({where}) AS {rank}_auctions"
        for rank, where in ranks.items()
    )
    same(
        lambda bids: bids.window(ef.tumbling("1d")).aggregate(**aggregates).drop("window_start", "window_end"),
        f"SELECT count(*) AS total, count(DISTINCT bidder) AS bidders, count(DISTINCT auction) AS auctions, {filtered} "
        f"FROM bid GROUP BY ts // {DAY}",
    )


def test_q18_last_bid_of_each_bidder_in_each_auction():
    last = [("ts", "descending"), ("seq", "descending")]
    same(
        lambda bids: bids.key_by("bidder", "auction").aggregate(emit="final", last=ef.top(1, by=last)).explode("last"),
        "SELECT * FROM bid QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY ts DESC, seq DESC) = 1",
    )


def test_q19_top_ten_bids_of_each_auction_with_their_rank():
    by = [("price", "descending"), ("ts", "ascending"), ("seq", "ascending")]
    same(
        lambda bids: bids.key_by("auction").aggregate(emit="final", top=ef.top(10, by=by)).explode("top", position="rank"),
        "SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, ts, seq) AS rank FROM bid WHERE price IS NOT NULL "
        "QUALIFY rank <= 10",
    )


def test_q7_all_bids_at_the_highest_price_of_their_day():
    same(
        lambda bids: bids.window(ef.tumbling("1d")).aggregate(top=ef.top(1, "price", ties=True)).explode("top").select(*BIDS.column_names),
        f"SELECT * FROM bid WHERE price IS NOT NULL QUALIFY rank() OVER (PARTITION BY ts // {DAY} ORDER BY price DESC) = 1",
    )


def test_statistics_of_each_auction():
    aggregates = {
        "median": ef.median("price"), "p90": ef.quantile("price", 0.9), "variance": ef.variance("price"), "stddev": ef.stddev("price"),
        "dear": ef.max_by("seq", "price"), "prices": ef.count_distinct("price"), "all_prices": ef.collect("price"),
    }  # fmt: skip
    same(
        lambda bids: bids.key_by("auction").aggregate(emit="final", **aggregates),
        "SELECT auction, median(price) AS median, quantile_cont(price, 0.9) AS p90, var_samp(price) AS variance, "
        "stddev_samp(price) AS stddev, arg_max(seq, price * 100000 + seq) AS dear, count(DISTINCT price) AS prices, "
        "list(price ORDER BY ts, price) FILTER (price IS NOT NULL) AS all_prices FROM bid GROUP BY auction",
    )
