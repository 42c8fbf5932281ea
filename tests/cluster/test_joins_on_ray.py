"""Two streams join on Ray while keys move, workers join and a worker is lost: the rows equal those of DuckDB's join."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
import ray
from watching import actor, until

import evenflow as ef

RATE = 1_000
JOIN = "SELECT l.key, l.seq, r.seq FROM l LEFT JOIN r ON l.key = r.key AND r.ts BETWEEN l.ts - 20 AND l.ts + 50"


def expected(left, right):
    """Return DuckDB's join of the rows that the job read."""
    tables = (pa.Table.from_pylist(rows) for rows in (left, right))
    connection = duckdb.connect()
    for name, table in zip("lr", tables, strict=True):
        connection.register(name, table)
    return sorted(connection.execute(JOIN).fetchall(), key=repr)


@pytest.mark.first
def test_join_is_that_of_duckdb_while_keys_move_and_workers_come_and_are_lost(tmp_path):
    flow, taken, rows = ef.Dataflow("joined-live"), ([], []), []
    sides = []
    for seed, kept in enumerate(taken):
        source = ef.generate(rate=RATE, every="50ms", keys=40, zipf=1.0, seed=seed, max_delay="100ms", name=f"side-{seed}")
        side = flow.read(source)
        side.write(ef.to_list(kept, name=f"taken-{seed}"))
        sides.append(side.key_by("key"))
    joined = sides[0].join(sides[1], ef.between("-20ms", "50ms"), how="left").named("joined").parallelism(2)
    joined.select("key", "seq", "seq_right").parallelism(2).write(ef.to_list(rows))
    saved = ef.CheckpointConfig(str(tmp_path), interval="300ms")
    restart = ef.RestartConfig(delay="10ms", most=1_000)  # a busy machine may keep a worker silent for longer than `heartbeat_timeout`
    by_hand = ef.BalanceConfig("off")
    job = flow.run(config=ef.JobConfig(parallelism=1, key_groups=16, checkpoint=saved, restart=restart, balance=by_hand))
    try:
        until(lambda: len(rows) > 500, "rows are joined")
        job.rebalance("joined")
        job.scale("joined", 3)
        before = len(rows)
        until(lambda: len(rows) > before + 500, "rows are joined by three workers")
        ray.kill(actor(job, "joined-0"))
        before = len(rows)
        until(lambda: len(rows) > before + 500, "rows are joined after a loss")
        job.stop(drain=True)
        job.wait("120s")
    finally:
        job.cancel()
    assert sorted(((row["key"], row["seq"], row["seq_right"]) for row in rows), key=repr) == expected(*taken)


def test_rows_without_a_partner_have_all_columns_before_the_other_side_has_had_a_row():
    flow, rows = ef.Dataflow("joined-late"), []
    left = flow.read(ef.from_items([{"k": k, "ts": k * 100} for k in range(200)], event_time="ts", name="left"))
    right = flow.read(ef.from_items([{"k": k, "ts": k * 100} for k in range(200)], event_time="ts", name="right"))
    late = right.filter(lambda row: row["k"] >= 150).map(lambda row: {"k": row["k"], "ts": row["ts"], "paid": True})
    joined = left.key_by("k").join(late.key_by("k"), ef.between("-50ms", "50ms"), how="left").named("joined").parallelism(2)
    joined.select("k", "paid").write(ef.to_list(rows))
    flow.run(config=ef.JobConfig(network=ef.NetworkConfig(source_rows=1, linger=0))).wait("120s")
    assert sorted(rows, key=lambda row: row["k"]) == [{"k": k, "paid": True if k >= 150 else None} for k in range(200)]
