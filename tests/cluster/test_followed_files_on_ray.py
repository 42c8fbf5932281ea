"""Files appear in a folder while a worker that reads it is lost and the source is scaled, on Ray: each row comes once."""

from __future__ import annotations

import threading
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from watching import actor, until

import evenflow as ef
from evenflow.scheduler.rescaling.operator_scaling import ScalingState

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is

ROWS = 40


def test_every_row_comes_once_while_a_worker_is_lost_and_the_source_is_scaled(tmp_path):
    folder, rows, ended = tmp_path / "in", [], threading.Event()
    folder.mkdir()
    appeared = 0

    def files_appear():
        nonlocal appeared
        while not ended.wait(0.02):
            numbers = range(ROWS * appeared, ROWS * (appeared + 1))
            table = pa.table({"ts": [1_000 + number for number in numbers], "n": [*numbers], "key": [number % 7 for number in numbers]})
            pq.write_table(table, folder / ".next")
            (folder / ".next").rename(folder / f"{appeared:06}.parquet")
            appeared += 1

    def numbered(state, row):
        count = (state or 0) + 1
        return count, {"n": row["n"], "key": row["key"], "count": count}

    def scaled(workers):
        def tried():
            with suppress(ef.JobNotRunningError, ef.JobBusyError, ef.RequestError):
                return job.scale("files", workers, timeout="120s").state is ScalingState.DONE
            return False

        until(tried, f"the source has {workers} workers")

    def more():
        before = len(rows)
        until(lambda: len(rows) > before + 10 * ROWS, "rows come")

    schema = {"ts": "int64", "n": "int64", "key": "int64"}
    flow = ef.Dataflow("followed-files")
    source = ef.read_parquet(folder, follow=True, poll_every="50ms", event_time="ts", max_delay="60s", schema=schema, name="files")
    flow.read(source).parallelism(1).key_by("key").stateful_map(numbered).write(ef.to_list(rows))
    saved = ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="300ms")
    restart = ef.RestartConfig(delay="10ms", most=1_000)  # a busy machine may keep a worker silent for longer than `heartbeat_timeout`
    job = flow.run(config=ef.JobConfig(parallelism=2, key_groups=16, checkpoint=saved, restart=restart))
    writer = threading.Thread(target=files_appear)
    writer.start()
    try:
        more()
        scaled(3)
        more()
        attempt = job.status().attempt
        ray.kill(actor(job, "files-1"))
        until(lambda: job.status().attempt > attempt, "the job goes back to its last checkpoint")
        more()
        scaled(2)
        more()
        ended.set()
        writer.join()
        until(lambda: len(rows) >= ROWS * appeared, "all rows have come")
        job.stop()
        job.wait("120s")
    finally:
        ended.set()
        writer.join()
        job.cancel()
    assert sorted(row["n"] for row in rows) == list(range(ROWS * appeared))
    for key in range(7):
        counts = [row["count"] for row in rows if row["key"] == key]
        assert counts == list(range(1, len(counts) + 1))
