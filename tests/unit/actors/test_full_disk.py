"""Jobs in this process whose disk is full for a while: for part of a state file, its end, or a manifest, during a restore.

The room is that of real files in a real folder; the same operations fail as on a full disk.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
from patience import patience

import evenflow as ef
from evenflow.connectors.python.list_sink import ListSink
from evenflow.scheduler.protocol.reports import CheckpointState

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

PATIENCE = patience(60)
KEYS = 400


class Disk:
    """A disk with `room` bytes in total for the files below `folder`, None for any number."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.room, self.refused = folder, None, set()
        for step in ("write", "ftruncate", "fsync"):
            monkeypatch.setattr(os, step, self.bounded(step, getattr(os, step)))

    @property
    def used(self):
        return sum(
            size_of(Path(folder, name)) for folder, _, names in os.walk(self.folder) for name in names
        )  # they may be removed meanwhile

    def bounded(self, step, does):
        def bounded(file, *args):
            path = str(Path(f"/proc/self/fd/{file}").readlink())
            if self.room is not None and path.startswith(str(self.folder)):
                needed = len(args[0]) if step == "write" else 0
                if self.used + needed > self.room:
                    self.refused.add((step, path.rpartition(".")[2]))
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return does(file, *args)

        return bounded


def size_of(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it was removed meanwhile
        return 0


@pytest.fixture
def disk(tmp_path, monkeypatch):
    (tmp_path / "checkpoints").mkdir()
    return Disk(tmp_path / "checkpoints", monkeypatch)


class Losing(ListSink):
    """A sink whose next commit fails after `lose`, as if a worker was lost."""

    lose = False

    def commit(self, checkpoint, committables):
        if self.lose:
            self.lose = False
            raise OSError("lost")
        return super().commit(checkpoint, committables)


def number(state, row):
    n = (state[0] if state else 0) + 1
    return (n, "x" * 500), {"key": row["key"], "n": n}


def until(condition, what, pause=0.01):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"within {PATIENCE} s not: {what}"
        time.sleep(pause)
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("part", ["nothing", "half a state", "all but the manifest"])
def test_job_says_that_its_disk_is_full_goes_back_meanwhile_and_goes_on_when_there_is_room(disk, part):
    rows, read = [], []
    flow, sink = ef.Dataflow("full"), Losing(rows, "to_rows")
    source = flow.read(ef.generate(rate=4_000, every="10ms", keys=KEYS))
    source.write(ef.to_list(read, name="to_read"))
    source.key_by("key").stateful_map(number).write(sink)
    config = ef.JobConfig(
        parallelism=2,
        key_groups=16,
        checkpoint=ef.CheckpointConfig(str(disk.folder), interval="20ms", kept=1, tolerable_failures=1_000_000),
        restart=ef.RestartConfig(delay=0),
    )
    job = flow.run(runtime="local", config=config)

    def complete():
        return [report.number for report in job.checkpoints() if report.state is CheckpointState.COMPLETE]

    def failed(since):
        reports = [report for report in job.checkpoints() if report.number > since and report.state is CheckpointState.FAILED]
        return reports if len(reports) >= 3 else None

    until(lambda: disk.used > KEYS * 600 and len(complete()) > 1, "there is state")
    for lost in (False, True):
        sink.lose = lost
        newest = max(complete())
        disk.room = disk.used + {"nothing": 0, "half a state": KEYS * 250, "all but the manifest": KEYS * 650}[part]
        if lost:
            disk.room = 0
        problems = [report.problem for report in until(lambda newest=newest: failed(newest), "it says that checkpoints fail")]
        assert any("No space left on device" in problem for problem in problems), problems
        disk.room = None
        before = max(complete(), default=newest)
        until(lambda before=before: max(complete(), default=0) > before, "it goes on")
    job.stop()
    job.wait("60s")
    counts = {}
    for row in read:
        counts[row["key"]] = counts.get(row["key"], 0) + 1
    assert sorted((row["key"], row["n"]) for row in rows) == sorted((key, n + 1) for key, count in counts.items() for n in range(count))
    assert not list(disk.folder.rglob("*.inprogress"))
