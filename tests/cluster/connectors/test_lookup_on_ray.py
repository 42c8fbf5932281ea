"""Workers on Ray read the table of a lookup again while rows arrive, and one of them is lost."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from watching import actor, until

import evenflow as ef

KEYS, WORKERS = 10, 2


def publish(path, version):
    """Replace a table atomically for its readers."""
    new = path.with_suffix(".new")
    pq.write_table(pa.table({"key": list(range(KEYS)), "version": [version] * KEYS}), new)
    new.rename(path)


@pytest.mark.parametrize("origin", ["function", "source"])
def test_running_workers_meet_each_new_table_also_after_a_loss_and_every_row_comes_once(tmp_path, origin):
    path = tmp_path / "rates.parquet"

    def read(name=str(path)):  # inside, so that it travels to workers, which don't find this module
        return pq.read_table(name)

    publish(path, 1)
    flow, rows = ef.Dataflow(f"rates-from-a-{origin}"), []
    numbers = flow.read(ef.generate(rate=1_000, keys=KEYS, every="50ms")).select("key", "seq")
    table = read if origin == "function" else ef.read_parquet(path)
    numbers.lookup(table, on="key", how="inner", refresh="50ms").named("rated").write(ef.to_list(rows))
    saved = ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="200ms")
    restart = ef.RestartConfig(delay="10ms", most=1_000)  # a busy machine may keep a worker silent for longer than `heartbeat_timeout`
    job = flow.run(config=ef.JobConfig(parallelism=WORKERS, checkpoint=saved, restart=restart))

    def both_have(version):
        assert not job.status().state.final, job.status().error
        return {row["seq"] % WORKERS for row in rows if row["version"] == version} == set(range(WORKERS))

    try:
        until(lambda: both_have(1), "rows meet the first table")
        publish(path, 2)
        until(lambda: both_have(2), "rows meet the second table")
        path.rename(path.with_suffix(".hidden"))
        until(lambda: any("could not be read again" in problem for problem in job.status().problems), "it is missed")
        publish(path, 3)
        until(lambda: both_have(3), "rows meet the third table")
        ray.kill(actor(job, "generate-0"))
        publish(path, 4)
        until(lambda: both_have(4), "rows meet the fourth table after a loss")
        job.stop(drain=True)
        job.wait("120s")
    finally:
        job.cancel()
    for worker in range(WORKERS):
        mine = sorted((row["seq"], row["version"]) for row in rows if row["seq"] % WORKERS == worker)
        assert [seq for seq, _ in mine] == list(range(worker, worker + WORKERS * len(mine), WORKERS)), "each row once, none missing"
        assert all(before <= after for (_, before), (_, after) in pairwise(mine)), "never back to an older table"
