"""Jobs in this process that save their state: a checkpoint's folder, a disk that is full, a sink that fails."""

from __future__ import annotations

import errno
import time
import uuid
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import evenflow as ef
from evenflow.connectors.list_sink import ListSink
from evenflow.scheduler.checkpoints import CheckpointState
from evenflow.stream import Stream

SLEEP = time.sleep
TOTAL = 2_000


@pytest.fixture(autouse=True)
def the_handle_may_poll(no_waiting_and_no_cluster, monkeypatch):
    """A job's handle asks for news 20 times a second: it is it that sleeps, not the test."""
    monkeypatch.setattr(time, "sleep", SLEEP)


def number(state, row):
    n = (state or 0) + 1
    return n, {"key": row["key"], "n": n}


def numbered(rows, sink=None, **source):
    flow = ef.Dataflow("f")
    keyed = flow.read(ef.generate(total=TOTAL, keys=20, rows_per_batch=64, **source)).key_by("key")
    keyed.stateful_map(number).write(sink if sink is not None else ef.to_list(rows))
    return flow


def config(folder, **options):
    settings = {"checkpoint_dir": str(folder), "checkpoint_interval": "5ms", "restart_delay": 0, "key_groups": 16, "source_rows": 64}
    return ef.JobConfig(**(settings | options))


def in_order(rows):
    return sorted((row["key"], row["n"]) for row in rows)


@pytest.fixture
def expected():
    rows = []
    numbered(rows).run(runtime="local").wait("60s")
    return in_order(rows)


class Flaky(ListSink):
    """Every third commit fails."""

    def start(self):
        super().start()
        self.asked = 0

    def commit(self, checkpoint, committables):
        self.asked += 1
        if self.asked % 3 == 0:
            raise OSError("not now")
        return super().commit(checkpoint, committables)


def test_sink_that_fails_now_and_then_gets_every_row_once(tmp_path, expected):
    rows = []
    sink = Flaky(rows, "to_list")
    numbered(rows, sink, rate=4_000).run(runtime="local", config=config(tmp_path, restart_most=1000)).wait("60s")
    assert sink.asked > 3
    assert in_order(rows) == expected


def test_job_begins_from_a_checkpoints_folder_and_commits_what_may_not_have_been(tmp_path, expected):
    rows = []
    job = numbered(rows, rate=2_000).run(runtime="local", config=config(tmp_path, checkpoint_interval=None))
    first = job.checkpoint()
    assert first.state is CheckpointState.COMPLETE
    second = job.checkpoint()
    job.cancel()
    job.wait("60s")
    before = list(rows)
    again = []
    folder = tmp_path / "f" / f"checkpoint-{second.number:08d}"
    numbered(again).run(runtime="local", config=config(tmp_path / "other"), from_savepoint=folder).wait("60s")
    once = {(row["key"], row["n"]) for row in [*before, *again]}
    assert sorted(once) == expected
    assert len(again) + first_rows(before, again) == TOTAL


def first_rows(before, again):
    """How many of the rows before are not among those that came again."""
    return len({(row["key"], row["n"]) for row in before} - {(row["key"], row["n"]) for row in again})


class FullDisk(MemoryFileSystem):
    """A file system whose files can't be written while it is full."""

    protocol = "full"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    full: ClassVar[bool] = True

    def _open(self, path, mode="rb", **options):
        if mode != "rb" and FullDisk.full:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return super()._open(path, mode, **options)


@pytest.fixture
def full_disk():
    fsspec.register_implementation("full", FullDisk, clobber=True)
    FullDisk.full = True
    return f"full://{uuid.uuid4().hex}"


def test_full_disk_fails_checkpoints_and_not_the_job_until_there_is_room(full_disk, expected):
    rows = []
    job = numbered(rows, rate=4_000).run(runtime="local", config=config(full_disk, tolerable_checkpoint_failures=10**6))
    with pytest.raises(ef.JobError, match=r"checkpoint \d+ of job `f` has failed: .*No space left on device"):
        job.checkpoint()
    assert rows == []
    FullDisk.full = False
    job.wait("60s")
    assert in_order(rows) == expected


def test_disk_that_stays_full_ends_the_job(full_disk):
    job = numbered([], rate=100).run(runtime="local", config=config(full_disk, tolerable_checkpoint_failures=2))
    with pytest.raises(ef.JobError, match=r"3 checkpoints in a row have failed; the last, 3: .*No space left on device"):
        job.wait("60s")


class Damaging:
    """Of a sink: the fourth checkpoint is damaged when it is committed, and the commit fails."""

    folder: Path
    damaged = None

    def commit(self, checkpoint, committables):
        committed = super().commit(checkpoint, committables)
        if checkpoint >= 4 and self.damaged is None:
            self.damaged = checkpoint
            for file in (self.folder / "f" / f"checkpoint-{checkpoint:08d}").glob("*.state"):
                file.unlink()
            raise OSError("the sink has seen the checkpoint go")
        return committed


class DamagingList(Damaging, ListSink):
    """It can take back."""


class DamagingLog(Damaging, ListSink):
    """It can't."""

    retractable = False


def damaging(kind, rows, folder):
    sink = kind(rows, "to_list")
    sink.folder = folder
    return sink


def test_what_was_committed_behind_the_checkpoint_that_is_gone_on_from_is_taken_back(tmp_path, expected):
    rows = []
    flow = numbered(rows, sink := damaging(DamagingList, rows, tmp_path), rate=4_000)
    (numbers,) = [node for node in flow.graph if node.name == "stateful_map"]
    Stream(flow, numbers).write(ef.write_parquet(tmp_path / "out"))
    job = flow.run(runtime="local", config=config(tmp_path))
    job.wait("60s")
    assert in_order(rows) == expected
    assert in_order(pq.read_table(tmp_path / "out").to_pylist()) == expected
    states = {report.number: report.state for report in job.checkpoints()}
    assert states[sink.damaged] is CheckpointState.UNREADABLE


def test_job_stops_where_a_sink_can_not_take_back_and_goes_on_if_duplicates_are_allowed(tmp_path, expected):
    rows = []
    flow = numbered(rows, damaging(DamagingLog, rows, tmp_path), rate=4_000)
    with pytest.raises(ef.JobError, match=r"(?s)`to_list` can't take back.*Put the checkpoint's files back.*allow_duplicates=True"):
        flow.run(runtime="local", config=config(tmp_path)).wait("60s")
    rows, folder = [], tmp_path / "again"
    flow = numbered(rows, damaging(DamagingLog, rows, folder), rate=4_000)
    flow.run(runtime="local", config=config(folder, allow_duplicates=True)).wait("60s")
    assert len(rows) > len(expected)
    assert sorted(set(in_order(rows))) == expected
