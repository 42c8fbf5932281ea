"""The queries of the price search machine run as one job, and give the rows of DuckDB."""

from __future__ import annotations

import numpy as np
import pytest

import evenflow as ef
from evenflow.bench.papers.psm import QUERIES, Visits
from evenflow.bench.papers.psm.check import connect, differences
from evenflow.bench.papers.psm.source import STREAMS, visits

TURNS = 60_000
FEW_PRODUCTS = {"products": 2, "turn_rate": 40.0}
"""So that each has more than 10,000 clicks, over 25 minutes."""

MANY_PRODUCTS = {"products": 25, "turn_rate": 100.0}


pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.mark.parametrize("arguments", [FEW_PRODUCTS, MANY_PRODUCTS], ids=["few products", "many products"])
def test_all_queries_in_one_job_give_the_rows_of_duckdb(arguments, tmp_path):
    flow = ef.Dataflow("psm")
    streams = Visits.generated(flow, turns=TURNS, rows_per_batch=700, **arguments)
    for name, query in QUERIES.items():
        query(streams).write(ef.write_parquet(tmp_path / name, name=f"{name}-out"))
    config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval=None))
    flow.run(runtime="local", config=config).wait()
    with connect(TURNS, **arguments) as database:
        found = {name: differences(database, name, tmp_path / name) for name in QUERIES}
    assert {name: (missing, wrong) for name, (_, missing, wrong) in found.items()} == dict.fromkeys(QUERIES, (0, 0))
    assert all(rows for rows, _, _ in found.values())


def test_streams_have_their_shares_and_their_order():
    click, impression, search = (visits(name, turns=10_000, rows_per_batch=10_000).reader(0, 1).poll(10_000).rows for name in STREAMS)
    assert (click.num_rows, impression.num_rows, search.num_rows) == (5_000, 5_000, 10_000)
    assert sorted(click["seq"].to_pylist() + impression["seq"].to_pylist()) == search["seq"].to_pylist() == list(range(10_000))
    prices = click["price"].to_numpy()
    assert 0.19 < prices.min() < prices.max() < 0.71
    owners = set(zip(click["product"].to_pylist(), click["owner"].to_pylist(), strict=True))
    assert len(owners) == len(set(click["product"].to_pylist()))


@pytest.mark.parametrize("stream", STREAMS)
def test_rows_depend_on_their_number_alone(stream):
    whole = visits(stream, turns=4_000).reader(0, 1).poll(4_000).rows.to_pylist()
    parts = [row for index in range(3) for row in visits(stream, turns=4_000).reader(index, 3).poll(4_000).rows.to_pylist()]
    assert sorted(parts, key=lambda row: row["seq"]) == whole


def test_no_row_is_behind_the_watermark():
    for stream in STREAMS:
        reader = visits(stream, turns=2_000).reader(0, 1)
        while not reader.finished:
            watermark = reader.watermark()
            assert np.all(reader.poll(50).times >= watermark)
