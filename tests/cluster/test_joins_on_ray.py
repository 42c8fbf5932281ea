"""Two streams join on Ray while keys move, workers join and a worker is lost: the rows are those that DuckDB's join gives."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
import ray
from watching import until

import evenflow as ef
from evenflow.actors.cluster import NAMESPACE

TOTAL, RATE = 12_000, 3_000
ROWS = {"total": TOTAL, "keys": 40, "zipf": 1.0, "event_rate": 1_000.0, "max_delay": "100ms"}


def everything(source):
    reader, batches = source.reader(0, 1), []
    while not reader.finished:
        batch = reader.poll(TOTAL)
        if batch is not None:
            batches.append(batch.rows)
    return pa.Table.from_batches(batches)


@pytest.fixture
def expected():
    left, right = (everything(ef.generate(seed=seed, **ROWS)) for seed in (1, 2))
    query = """
        SELECT l.key, l.seq, r.seq FROM l LEFT JOIN r ON l.key = r.key AND r.ts BETWEEN l.ts - 20 AND l.ts + 50
    """
    return sorted(duckdb.connect().register("l", left).register("r", right).execute(query).fetchall(), key=repr)


def test_join_is_that_of_duckdb_while_keys_move_and_workers_come_and_are_lost(tmp_path, expected):
    flow, rows = ef.Dataflow("joined-live"), []
    left, right = (
        flow.read(ef.generate(seed=seed, rate=RATE, every="50ms", name=f"side-{seed}", **ROWS)).parallelism(1) for seed in (1, 2)
    )
    joined = left.key_by("key").join(right.key_by("key"), ef.between("-20ms", "50ms"), how="left").named("joined")
    joined.select("key", "seq", "seq_right").write(ef.to_list(rows))
    config = ef.JobConfig(
        parallelism=2,
        key_groups=16,
        checkpoint=ef.CheckpointConfig(str(tmp_path), interval="300ms"),
        restart=ef.RestartConfig(delay="10ms"),
    )
    job = flow.run(config=config)
    until(lambda: len(rows) > 500, "rows are joined")
    job.rebalance("joined")
    job.scale("joined", 3)
    until(lambda: len(rows) > 3_000, "rows are joined by three workers")
    ray.kill(ray.get_actor("joined-live/joined-0", namespace=NAMESPACE))
    job.wait("120s")
    assert sorted(((row["key"], row["seq"], row["seq_right"]) for row in rows), key=repr) == expected
