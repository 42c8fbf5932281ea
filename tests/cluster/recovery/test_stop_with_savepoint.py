"""A job on Ray is stopped with a savepoint, and another run begins from that: every sink has each row once."""

from __future__ import annotations

import json
from collections import Counter

import psycopg
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from kafka_broker import kafka_broker, make_topic
from postgres_server import postgres_server
from watching import await_rows

import evenflow as ef
from evenflow.bench.kafka.topics import records_of
from evenflow.engine.errors import RequestError

RATE = 2_000


@pytest.fixture(scope="module")
def bootstrap():
    with kafka_broker() as address:
        yield address


@pytest.fixture(scope="module")
def server():
    with postgres_server() as server:
        yield server


def run(number, folder, sinks, **options):
    flow, delivered = ef.Dataflow("shop"), []
    rows = flow.read(ef.generate(rate=RATE, every="50ms", keys=50, string_keys=True))
    for sink in sinks():
        rows = rows.write(sink)
    rows.write(ef.to_list(delivered))
    counted = rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count())
    counted.write(ef.write_parquet(folder / "counts", append=True, name="counts"))
    checkpoint = ef.CheckpointConfig(folder / f"checkpoints of run {number}", interval="300ms")
    return flow.run(config=ef.JobConfig(parallelism=2, checkpoint=checkpoint), **options), delivered


@pytest.mark.timeout(400)
def test_a_run_that_goes_on_from_it_loses_and_repeats_no_row_in_any_sink(bootstrap, server, cluster, tmp_path):
    topic = make_topic(bootstrap, partitions=3)
    with psycopg.connect(server.url, autocommit=True) as database:
        database.execute("CREATE TABLE rows (key text, ts bigint, value double precision, seq bigint)")

    def sinks():
        return (
            ef.write_kafka(topic, bootstrap=bootstrap, key="key"),
            ef.write_sql(server.url, "rows"),
            ef.write_delta(tmp_path / "delta"),
            ef.write_parquet(tmp_path / "files", append=True),
        )

    first, before = run(1, tmp_path, sinks)
    await_rows(first, before, RATE)
    first.stop(savepoint=tmp_path / "savepoint")
    assert first.status().state == "finished"
    second, after = run(2, tmp_path, sinks, from_savepoint=tmp_path / "savepoint")
    await_rows(second, after, RATE)
    second.stop(drain=True)
    second.wait("120s")

    expected = Counter(row["seq"] for row in [*before, *after])
    assert max(expected.values()) == 1
    for source in range(2):
        mine = sorted(seq for seq in expected if seq % 2 == source)
        assert mine == list(range(source, source + 2 * len(mine), 2)), "none is missing"
    with psycopg.connect(server.url) as database:
        in_table = [seq for (seq,) in database.execute("SELECT seq FROM rows")]
    found = {
        "kafka": [json.loads(value)["seq"] for records in records_of(bootstrap, topic).values() for _, value in records],
        "postgres": in_table,
        "delta": DeltaTable(tmp_path / "delta").to_pyarrow_table()["seq"].to_pylist(),
        "files": pq.read_table(tmp_path / "files")["seq"].to_pylist(),
    }
    assert {name: Counter(seqs) == expected for name, seqs in found.items()} == dict.fromkeys(found, True)
    windows = pq.read_table(tmp_path / "counts").to_pylist()
    assert max(Counter((row["key"], row["window_start"]) for row in windows).values()) == 1, "no window was emitted before it was complete"
    assert sum(row["n"] for row in windows) == len(expected)


def test_another_process_stops_a_job_and_gets_the_reason_why_there_is_no_savepoint(cluster, tmp_path):
    job, delivered = run(1, tmp_path, lambda: ())
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    await_rows(job, delivered, RATE / 2)
    other = ef.connect("shop")
    with pytest.raises(
        RequestError,
        match=r"taken is not empty, it has notes\.txt: give the savepoint its own folder. The job has stopped, and its own folder",
    ):
        other.stop(savepoint=tmp_path / "taken")
    job.wait("60s")
    assert (tmp_path / "taken" / "notes.txt").read_text() == "mine"
    with pytest.raises(RequestError, match="late was not taken: job `shop` is finished already"):
        job.stop(savepoint=tmp_path / "late")
