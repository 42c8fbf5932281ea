"""Files appear in a folder while a worker that reads it is lost and the source is scaled, on Ray: each row is emitted once."""

from __future__ import annotations

import threading
from contextlib import nullcontext, suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from ftp_server import ftp_server
from watching import actor, until

import evenflow as ef
from evenflow.scheduler.protocol.reports import ScalingState

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is

ROWS, KEYS = 40, 7


class AppearingFiles(threading.Thread):
    """A thread that renames files into a folder, one each `pause` seconds, until it is stopped."""

    def __init__(self, folder, pause):
        super().__init__()
        self.folder, self.pause, self.files, self.ended = folder, pause, 0, threading.Event()

    def run(self):
        while not self.ended.wait(self.pause):
            numbers = range(ROWS * self.files, ROWS * (self.files + 1))
            table = pa.table({"ts": [1_000 + n for n in numbers], "n": [*numbers], "key": [n % KEYS for n in numbers]})
            pq.write_table(table, self.folder / ".next")
            (self.folder / ".next").rename(self.folder / f"{self.files:06}.parquet")
            self.files += 1

    def end(self):
        self.ended.set()
        self.join()


def counted(folder, rows):
    """Return a flow that counts the rows of each key."""

    def numbered(state, row):
        count = (state or 0) + 1
        return count, {"n": row["n"], "key": row["key"], "count": count}

    flow, schema = ef.Dataflow("followed-files"), {"ts": "int64", "n": "int64", "key": "int64"}
    source = ef.read_parquet(folder, follow=True, poll_every="50ms", event_time="ts", max_delay="60s", schema=schema, name="files")
    flow.read(source).parallelism(1).key_by("key").stateful_map(numbered).write(ef.to_list(rows))
    return flow


def scale(job, workers):
    def tried():
        with suppress(ef.JobNotRunningError, ef.JobBusyError, ef.RequestError):
            return job.scale("files", workers, timeout="120s").state is ScalingState.DONE
        return False

    until(tried, f"the source has {workers} workers")


@pytest.mark.parametrize(("server", "pause"), [(nullcontext, 0.02), (ftp_server, 0.2)], ids=["a folder", "an FTP server"])
def test_every_row_comes_once_while_a_worker_is_lost_and_the_source_is_scaled(server, pause, tmp_path):
    (tmp_path / "in").mkdir()
    with server(tmp_path / "in") as folder:
        check(folder, tmp_path, pause)


def check(folder, tmp_path, pause):
    rows, appearing = [], AppearingFiles(tmp_path / "in", pause)
    saved = ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="300ms")
    restart = ef.RestartConfig(delay="10ms", most=1_000)  # a busy machine may keep a worker silent for longer than `heartbeat_timeout`
    config = ef.JobConfig(parallelism=2, key_groups=16, checkpoint=saved, restart=restart)
    job = counted(folder, rows).run(config=config)
    appearing.start()

    def more():
        before = len(rows)
        until(lambda: len(rows) > before + 10 * ROWS, "rows come")

    try:
        more()
        scale(job, 3)
        more()
        attempt = job.status().attempt
        ray.kill(actor(job, "files-1"))
        until(lambda: job.status().attempt > attempt, "the job goes back to its last checkpoint")
        more()
        scale(job, 2)
        more()
        appearing.end()
        until(lambda: len(rows) >= ROWS * appearing.files, "all rows have come")
        job.stop(drain=True)
        job.wait("120s")
    finally:
        appearing.end()
        job.cancel()
    assert sorted(row["n"] for row in rows) == list(range(ROWS * appearing.files))
    for key in range(KEYS):
        counts = [row["count"] for row in rows if row["key"] == key]
        assert counts == list(range(1, len(counts) + 1))
