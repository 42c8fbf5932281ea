from __future__ import annotations

import os
from collections import Counter

import pyarrow as pa
import pytest
from kafka_broker import kafka_broker

from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.harness.task import Answer
from evenflow.bench.kafka import count
from evenflow.bench.kafka.chaos import KEYS, compare
from evenflow.bench.kafka.proxy import Proxy
from evenflow.bench.kafka.records import batch_of, batches
from evenflow.bench.kafka.run import BENCHMARK
from evenflow.bench.kafka.topics import produce, records_of, topics


@pytest.fixture(scope="module")
def bootstrap():
    with kafka_broker() as address:
        yield address


def test_a_topic_has_the_rows_that_were_produced(bootstrap):
    with topics(bootstrap, ["rows"]) as names:
        assert produce(bootstrap, names["rows"], batches(25_000), key="key") == 25_000
        found = records_of(bootstrap, names["rows"])
    of_keys = [{key for key, _ in records} for records in found.values()]
    assert sum(map(len, found.values())) == 25_000
    assert sum(map(len, of_keys)) == len(set.union(*of_keys)), "a key is in one partition"


@pytest.mark.skipif("EVENFLOW_KAFKA" in os.environ, reason="the proxy is for a broker on loopback")
def test_clients_of_a_proxy_stay_with_it_and_find_it_again_after_a_cut(bootstrap):
    with Proxy(bootstrap) as proxy, topics(bootstrap, ["rows"]) as names:
        produce(proxy.bootstrap, names["rows"], [batch_of(0, 1_000)])
        assert proxy.cut() >= 0
        produce(proxy.bootstrap, names["rows"], [batch_of(1_000, 2_000)])
        assert sum(map(len, records_of(proxy.bootstrap, names["rows"]).values())) == 2_000


def test_systems_that_count_differently_fail_the_run(monkeypatch):
    def answer(system, task, timeout):
        return [Answer(1.0, task.rows, {"rows": 10.0 if system.endswith("bytewax") else 11.0}, {"cpu_seconds": 0.5})]

    monkeypatch.setattr(count, "run_system", answer)
    monkeypatch.setattr(count.machine, "busy_share", lambda: 0.0)
    with pytest.raises(BenchmarkError, match="count: bytewax gives"):
        count.measure("here", "topic", BENCHMARK.parse(["--systems", "evenflow,bytewax"]), lambda _: None)


@pytest.mark.parametrize(
    ("seqs", "differences"),
    [(range(51), (0, 0)), (range(50), (2, 0)), ((*range(51), 50), (0, 2))],
    ids=["all are there", "one is missing", "one comes twice"],
)
def test_chaos_finds_rows_that_are_missing_or_repeated(seqs, differences):
    counts: Counter[int] = Counter()
    rows = []
    for n in seqs:
        counts[n % KEYS] += 1
        rows.append({"n": n, "k": n % KEYS, "count": counts[n % KEYS]})
    assert compare(pa.Table.from_pylist(rows), 51) == (len(rows), *differences)
