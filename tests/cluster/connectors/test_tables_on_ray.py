"""A job on Ray writes into tables while its workers, its coordinator and the database are killed."""

from __future__ import annotations

import os
import signal

import psycopg
import pytest
from postgres_server import postgres_server
from watching import await_rows, pid

import evenflow as ef

RATE = 2_000


@pytest.fixture(scope="module")
def server():
    with postgres_server() as server:
        yield server


def test_moves_and_killed_workers_coordinators_and_databases_leave_the_right_rows_in_tables(server, tmp_path):
    with psycopg.connect(server.url, autocommit=True) as database:
        database.execute("CREATE TABLE rows (key text, ts bigint, value double precision, seq bigint)")
        database.execute("CREATE TABLE counts (key text PRIMARY KEY, n bigint)")
        database.execute("CREATE TABLE tens (tens bigint PRIMARY KEY, keys bigint)")
    delivered = []
    flow = ef.Dataflow("to-tables")
    rows = flow.read(ef.generate(rate=RATE, every="50ms", keys=50, string_keys=True))
    rows.write(ef.write_sql(server.url, "rows", name="rows")).write(ef.to_list(delivered))
    counts = rows.key_by("key").aggregate(n=ef.count()).named("count")
    counts.write(ef.write_sql(server.url, "counts", mode="upsert", key="key", name="counts"))
    tens = counts.select(tens=ef.col("n") // 10).key_by("tens").aggregate(keys=ef.count())
    tens.write(ef.write_sql(server.url, "tens", mode="upsert", key="tens", name="tens"))
    job = flow.run(
        config=ef.JobConfig(
            parallelism=2,
            checkpoint=ef.CheckpointConfig(str(tmp_path), interval="300ms"),
            restart=ef.RestartConfig(delay="100ms", most=1_000),
        )
    )
    try:
        await_rows(job, delivered, RATE / 4)
        for worker in (0, 1, 0):
            job.migrate("count", keys=[f"key-{n}" for n in range(50)], to=worker)
            await_rows(job, delivered, RATE / 8)
        os.kill(pid(job, "generate-0"), signal.SIGKILL)
        await_rows(job, delivered, RATE / 4)
        os.kill(pid(job, "coordinator"), signal.SIGKILL)
        await_rows(job, delivered, RATE / 4)
        server.stop()  # at once, as a crash: transactions are lost, committed ones are not
        server.start()
        await_rows(job, delivered, RATE / 4)
        job.stop(drain=True)
        job.wait("60s")
    finally:
        if not job.status().state.final:
            job.cancel()

    with psycopg.connect(server.url) as database:
        seqs = [seq for (seq,) in database.execute("SELECT seq FROM rows ORDER BY seq")]
        counted = database.execute("SELECT key, n FROM counts ORDER BY key").fetchall()
        of_tens = database.execute("SELECT tens, keys FROM tens ORDER BY tens").fetchall()
        expected_tens = database.execute("SELECT n / 10, count(*) FROM counts GROUP BY 1 ORDER BY 1").fetchall()
        expected = database.execute("SELECT key, count(*) FROM rows GROUP BY key ORDER BY key").fetchall()
    assert seqs == sorted(row["seq"] for row in delivered)
    for source in range(2):
        mine = [seq for seq in seqs if seq % 2 == source]
        assert mine == list(range(source, source + 2 * len(mine), 2)), "each row once, none missing"
    assert counted == expected
    assert of_tens == expected_tens
