"""A hot key of a join is split over workers and gathered again on Ray while a worker is lost: the rows equal DuckDB's."""

from __future__ import annotations

import time
from contextlib import suppress

import duckdb
import pyarrow as pa
import ray
from watching import actor, until

import evenflow as ef
from evenflow.scheduler.protocol.reports import MigrationState

JOIN = "SELECT l.key, l.seq, r.seq FROM l LEFT JOIN r ON l.key = r.key AND r.ts BETWEEN l.ts - 20 AND l.ts + 50"


def expected(left, right):
    """Return DuckDB's join of the rows that the job read."""
    connection = duckdb.connect()
    for name, rows in (("l", left), ("r", right)):
        connection.register(name, pa.Table.from_pylist(rows))
    return sorted(connection.execute(JOIN).fetchall(), key=repr)


def joining(name, taken, rows, workers, *, left=800, right=200):
    """Build a join of Zipf keys with this number of workers, in which key 0 is the hottest; all else has one worker."""

    def costly(rows):
        """Add a cost per row: otherwise the cost of batches would dominate a worker's time."""
        time.sleep(rows.num_rows * 0.0001)
        return rows

    flow, sides = ef.Dataflow(name), []
    for side, (rate, kept) in enumerate(zip((left, right), taken, strict=True)):
        source = ef.generate(rate=rate, every="50ms", keys=20, zipf=1.5, seed=side, max_delay="100ms", name=f"side-{side}")
        stream = flow.read(source)
        stream.write(ef.to_list(kept, name=f"taken-{side}"))
        sides.append(stream.key_by("key"))
    joined = sides[0].join(sides[1], ef.between("-20ms", "50ms"), how="left").named("joined").parallelism(workers)
    costing = joined.map_batches(costly).parallelism(workers).select("key", "seq", "seq_right").parallelism(workers)
    costing.write(ef.to_list(rows))
    return flow


def settings(folder, **groups):
    saved = ef.CheckpointConfig(str(folder), interval="300ms")
    restart = ef.RestartConfig(delay="10ms", most=1_000)  # a busy machine may keep a worker silent for longer than `heartbeat_timeout`
    return ef.JobConfig(parallelism=1, key_groups=16, checkpoint=saved, restart=restart, **groups)


def triples(rows):
    return sorted(((row["key"], row["seq"], row["seq_right"]) for row in rows), key=repr)


def done(change):
    """Repeat a change until it is made: a job that restores a checkpoint rejects it for a while, or ends it early."""

    def tried():
        with suppress(ef.JobNotRunningError, ef.JobBusyError):
            return change().state is MigrationState.DONE
        return False

    until(tried, "the splits are changed")


def save(job):
    """Wait for a checkpoint of the present state, so that the job restores no earlier one."""

    def tried():
        with suppress(ef.RequestError):
            return job.checkpoint("120s")
        return None

    until(tried, "a checkpoint is saved")


def test_key_is_split_and_gathered_by_hand_and_a_worker_that_shares_it_is_lost(tmp_path):
    taken, rows = ([], []), []
    job = joining("split-live", taken, rows, 3).run(config=settings(tmp_path))

    def more():
        before = len(rows)
        until(lambda: len(rows) > before + 300, "rows are joined")

    try:
        more()
        done(lambda: job.split("joined", 0, to=[0, 1, 2], dealt="left", timeout="120s"))
        more()
        save(job)
        attempt = job.status().attempt
        ray.kill(actor(job, "joined-1"))
        until(lambda: job.status().attempt > attempt, "the job goes back to its last checkpoint")
        more()
        done(lambda: job.unsplit("joined", 0, timeout="120s"))
        more()
        done(lambda: job.split("joined", 0, to=[0, 1, 2], dealt="left", timeout="120s"))
        more()
        job.stop(drain=True)
        job.wait("120s")
    finally:
        job.cancel()
    assert triples(rows) == expected(*taken)


def test_hotspot_splits_the_hottest_key_automatically(tmp_path):
    taken, rows = ([], []), []
    balance = ef.BalanceConfig("hotspot", after="500ms", cooldown="500ms", least_busy=0.0)
    config = settings(tmp_path, balance=balance, metrics=ef.MetricsConfig(window="250ms"))
    job = joining("split-itself", taken, rows, 4).run(config=config)

    def with_splits():
        return [m for m in job.migrations() if m.plan is not None and m.plan.splits and m.state is MigrationState.DONE]

    try:
        (split, *_) = until(with_splits, "a key has been split")[0].plan.splits
        before = len(rows)
        until(lambda: len(rows) > before + 300, "rows are joined by several workers")
        job.stop(drain=True)
        job.wait("120s")
    finally:
        job.cancel()
    assert (split.key, split.dealt) == (0, "left")
    assert triples(rows) == expected(*taken)
