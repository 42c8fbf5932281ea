"""NexMark and the price search machine read their streams from topics, and give the rows of DuckDB."""

from __future__ import annotations

import time

import pytest
from kafka_broker import kafka_broker

import evenflow as ef
from evenflow.bench.nexmark.check import compare
from evenflow.bench.nexmark.check import connect as nexmark_oracle
from evenflow.bench.nexmark.data import make
from evenflow.bench.nexmark.queries import QUERIES as NEXMARK
from evenflow.bench.nexmark.streams import read_events
from evenflow.bench.nexmark.topics import event_topics
from evenflow.bench.psm import QUERIES as PSM
from evenflow.bench.psm import Visits
from evenflow.bench.psm.check import connect as psm_oracle
from evenflow.bench.psm.check import differences
from evenflow.bench.psm.topics import visit_topics

SLEEP = time.sleep
EVENTS = 20_000
VISITS = {"turns": 42_000, "products": 2, "turn_rate": 40.0}
"""So that each product has more than 10,000 clicks."""

TWO_WORKERS = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval=None))


@pytest.fixture(autouse=True)
def the_handle_may_poll(no_waiting_and_no_cluster, monkeypatch):
    """A job's handle asks for news 20 times a second: it is it that sleeps, not the test."""
    monkeypatch.setattr(time, "sleep", SLEEP)


@pytest.fixture(scope="module")
def bootstrap():
    with kafka_broker() as address:
        yield address


@pytest.fixture(scope="module")
def topics(bootstrap):
    with event_topics(bootstrap, EVENTS, lambda _: None) as made:
        yield made


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    files = make(tmp_path_factory.mktemp("events"), EVENTS, lambda _: None)
    with nexmark_oracle(files.folder / "parquet") as database:
        yield database


@pytest.mark.parametrize("query", ["q1", "q4", "q5", "q8", "q18"])
def test_nexmark_gives_the_rows_of_duckdb(query, topics, oracle, tmp_path):
    flow = ef.Dataflow(f"nexmark-{query}")
    NEXMARK[query](read_events(flow, topics, "kafka")).write(ef.write_parquet(tmp_path))
    flow.run(runtime="local", config=TWO_WORKERS).wait()
    rows, missing, wrong = compare(oracle, query, tmp_path)
    assert rows
    assert (missing, wrong) == (0, 0)


def test_the_price_search_machine_gives_the_rows_of_duckdb(bootstrap, tmp_path):
    with visit_topics(bootstrap, lambda _: None, **VISITS) as made:
        flow = ef.Dataflow("psm")
        streams = Visits.from_topics(flow, made)
        for name, query in PSM.items():
            query(streams).write(ef.write_parquet(tmp_path / name, name=f"{name}-out"))
        flow.run(runtime="local", config=TWO_WORKERS).wait()
    with psm_oracle(**VISITS) as database:
        found = {name: differences(database, name, tmp_path / name) for name in PSM}
    assert {name: (missing, wrong) for name, (_, missing, wrong) in found.items()} == dict.fromkeys(PSM, (0, 0))
    assert all(rows for rows, _, _ in found.values())
