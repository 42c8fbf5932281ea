"""Jobs in this process whose file sinks find no room for a while: in a write, in any step of preparing a checkpoint, or in its
commit.

The files are real ones in a real folder; the same operations fail as on a full disk.
"""

from __future__ import annotations

import errno
import io
import os
import time
from pathlib import Path

import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq
import pytest
from patience import patience

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

PATIENCE = patience(60)
SINKS = {"parquet": ef.write_parquet, "csv": ef.write_csv, "json": ef.write_json}
READERS = {"parquet": pq.read_table, "csv": arrow_csv.read_csv, "json": arrow_json.read_json}
STEPS = ("open", "write", "fsync file", "rename", "fsync folder", "replace")
"""The steps in which a sink needs room: writing a part, preparing it, and (the last two) the commit that makes it visible."""


class Disk:
    """A disk on which the step `full` (None: no step) of files in `folder` fails."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.full, self.refused = folder, None, 0
        for step in ("rename", "replace"):
            monkeypatch.setattr(os, step, self.naming(step, getattr(os, step)))
        monkeypatch.setattr(os, "fsync", self.syncing(os.fsync))
        monkeypatch.setattr(io, "open", self.opening(io.open))

    def need_room(self, step, path):
        if step == self.full and str(path).startswith(str(self.folder)):
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def naming(self, step, rename):
        def bounded(source, target, **options):
            self.need_room(step, target)
            rename(source, target, **options)

        return bounded

    def syncing(self, fsync):
        def bounded(file):
            path = Path(f"/proc/self/fd/{file}").readlink()
            self.need_room("fsync folder" if path.is_dir() else "fsync file", path)
            fsync(file)

        return bounded

    def opening(self, open_file):
        def bounded(path, mode="r", *args, **options):
            if mode != "xb" or not str(path).startswith(str(self.folder)):
                return open_file(path, mode, *args, **options)
            self.need_room("open", path)
            return io.BufferedWriter(FileOnDisk(path, self))

        return bounded


class FileOnDisk(io.FileIO):
    def __init__(self, path, disk):
        super().__init__(path, "x")
        self.path, self.disk = path, disk

    def write(self, data):
        self.disk.need_room("write", self.path)
        return super().write(data)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    return Disk(tmp_path / "out", monkeypatch)


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"within {PATIENCE} s not: {what}"
        time.sleep(0.01)
    return found


def run(disk, kind, rows, **restart):
    flow = ef.Dataflow("full")
    source = flow.read(ef.generate(rate=2_000, every="10ms", keys=20))
    source.write(SINKS[kind](disk.folder))
    source.write(ef.to_list(rows))
    checkpoint = ef.CheckpointConfig(str(disk.folder.parent / "checkpoints"), interval="20ms")
    return flow.run(runtime="local", config=ef.JobConfig(parallelism=2, checkpoint=checkpoint, restart=ef.RestartConfig(**restart)))


def parts(disk, kind):
    return sorted(disk.folder.glob(f"part-*.{kind}"))


def sorted_rows(rows):
    return sorted(tuple(sorted(row.items())) for row in rows)


@pytest.mark.few(6)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", SINKS)
def test_file_sink_that_finds_no_room_goes_on_once_there_is_some_and_its_rows_are_exact(disk, kind, step):
    rows = []
    job = run(disk, kind, rows, strategy="fixed", delay=0, most=1_000_000)
    until(lambda: len(parts(disk, kind)) > 1, "files appear")
    disk.full = step
    until(lambda: disk.refused >= 3, "the disk is full")
    disk.full = None
    before = len(parts(disk, kind))
    until(lambda: len(parts(disk, kind)) > before, "it goes on")
    job.stop()
    job.wait("60s")
    written = [row for path in parts(disk, kind) for row in READERS[kind](path).to_pylist()]
    assert sorted_rows(written) == sorted_rows(rows)
    assert parts(disk, kind) == sorted(disk.folder.iterdir()), "nothing is left behind"


@pytest.mark.few(4)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", SINKS)
def test_job_that_may_not_begin_again_stops_and_says_which_sink_found_no_room(disk, kind, step):
    job = run(disk, kind, [], strategy="none")
    until(lambda: len(parts(disk, kind)) > 1, "files appear")
    disk.full = step
    with pytest.raises(ef.EvenflowError, match=rf"(?s)`write_{kind}`.*No space left on device"):
        job.wait("60s")
    assert job.status().state == "failed"
