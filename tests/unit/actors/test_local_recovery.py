"""Jobs in this process that save their state: a checkpoint's folder, a full disk, a failing sink."""

from __future__ import annotations

import errno
import uuid
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from source_clocks import slow_until

import evenflow as ef
from evenflow.actors.task.saved_state import SavedState
from evenflow.connectors.python.list_sink import ListSink
from evenflow.scheduler.protocol.manifest import Manifest
from evenflow.scheduler.protocol.reports import CheckpointState
from evenflow.scheduler.record.restoring.run_claim import RunClaim
from evenflow.stream import Stream
from evenflow.testing.settings import changed

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

TOTAL = 2_000


def number(state, row):
    n = (state or 0) + 1
    return n, {"key": row["key"], "n": n}


def numbered(rows, sink=None, **source):
    flow = ef.Dataflow("f")
    keyed = flow.read(ef.generate(total=TOTAL, keys=20, rows_per_batch=64, **source)).key_by("key")
    keyed.stateful_map(number).write(sink if sink is not None else ef.to_list(rows))
    return flow


def config(folder, **options):
    settings = ef.JobConfig(
        key_groups=16,
        checkpoint=ef.CheckpointConfig(str(folder), interval="5ms"),
        restart=ef.RestartConfig(delay=0),
        network=ef.NetworkConfig(source_rows=64),
    )
    return changed(settings, **options)


def in_order(rows):
    return sorted((row["key"], row["n"]) for row in rows)


@pytest.fixture
def expected():
    rows = []
    numbered(rows).run(runtime="local").wait("60s")
    return in_order(rows)


class Flaky(ListSink):
    """A sink whose every third commit fails."""

    def start(self):
        super().start()
        self.calls = 0

    def commit(self, checkpoint, committables):
        self.calls += 1
        if self.calls % 3 == 0:
            raise OSError("not now")
        return super().commit(checkpoint, committables)


def test_sink_that_fails_now_and_then_gets_every_row_once(tmp_path, expected):
    rows = []
    sink = Flaky(rows, "to_list")
    flow = numbered(rows, sink, rate=4_000, clock=slow_until(lambda: sink.calls > 3))
    flow.run(runtime="local", config=config(tmp_path, restart={"most": 1000})).wait("60s")
    assert sink.calls > 3
    assert in_order(rows) == expected


def test_job_begins_from_a_checkpoints_folder_and_commits_what_may_not_have_been(tmp_path, expected):
    rows = []
    job = numbered(rows, rate=2_000, clock=slow_until(lambda: False)).run(
        runtime="local", config=config(tmp_path, checkpoint={"interval": None})
    )
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
    """Return the number of earlier rows that are not among the repeated ones."""
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
    FullDisk.full = False
    return f"full://{uuid.uuid4().hex}"


def test_full_disk_fails_checkpoints_and_not_the_job_until_there_is_room(full_disk, expected):
    rows, failed = [], []
    flow = numbered(rows, rate=4_000, clock=slow_until(lambda: failed))
    job = flow.run(runtime="local", config=config(full_disk, checkpoint={"tolerable_failures": 10**6}))
    FullDisk.full = True
    with pytest.raises(ef.JobError, match=r"checkpoint \d+ of job `f` has failed: .*No space left on device"):
        job.checkpoint()
    FullDisk.full = False
    failed.append(True)
    job.wait("60s")
    assert in_order(rows) == expected


def test_job_does_not_start_on_a_full_disk(full_disk):
    FullDisk.full = True
    with pytest.raises(ef.StateError, match=r"full://.*No space left on device"):
        numbered([], rate=100).run(runtime="local", config=config(full_disk))


def test_disk_that_stays_full_ends_the_job(full_disk):
    job = numbered([], rate=100).run(runtime="local", config=config(full_disk, checkpoint={"tolerable_failures": 2}))
    FullDisk.full = True
    with pytest.raises(ef.JobError, match=r"3 checkpoints in a row have failed; the last, \d+: .*No space left on device"):
        job.wait("60s")


class Damaging:
    """A part of a sink that damages the fourth checkpoint, or the first with state after it, in its commit, which fails."""

    folder: Path
    damaged = None

    def commit(self, checkpoint, committables):
        committed = super().commit(checkpoint, committables)
        files = list((self.folder / "f" / f"checkpoint-{checkpoint:08d}").glob("*.state"))
        if checkpoint >= 4 and files and self.damaged is None:
            self.damaged = checkpoint
            for file in files:
                file.unlink()
            raise OSError("the sink has seen the checkpoint go")
        return committed


class DamagingList(Damaging, ListSink):
    """A damaging sink that can retract."""


class DamagingLog(Damaging, ListSink):
    """A damaging sink that can't retract."""

    retractable = False


def damaging(kind, rows, folder):
    sink = kind(rows, "to_list")
    sink.folder = folder
    return sink


def test_commits_after_the_restored_checkpoint_are_retracted(tmp_path, expected):
    rows = []
    sink = damaging(DamagingList, rows, tmp_path)
    flow = numbered(rows, sink, rate=4_000, clock=slow_until(lambda: sink.damaged))
    (numbers,) = [node for node in flow.graph if node.name == "stateful_map"]
    Stream(flow, numbers).write(ef.write_parquet(tmp_path / "out"))
    job = flow.run(runtime="local", config=config(tmp_path))
    job.wait("60s")
    assert in_order(rows) == expected
    assert in_order(pq.read_table(tmp_path / "out").to_pylist()) == expected
    states = {report.number: report.state for report in job.checkpoints()}
    assert states[sink.damaged] is CheckpointState.UNREADABLE


def test_job_stops_if_a_sink_can_not_retract_unless_duplicates_are_allowed(tmp_path, expected):
    def run(folder, **options):
        sink = damaging(DamagingLog, rows := [], folder)
        flow = numbered(rows, sink, rate=4_000, clock=slow_until(lambda: sink.damaged))
        flow.run(runtime="local", config=config(folder, **options)).wait("60s")
        return rows

    with pytest.raises(ef.JobError, match=r"(?s)`to_list` can't retract.*Restore the checkpoint's files.*allow_duplicates=True"):
        run(tmp_path)
    rows = run(tmp_path / "again", checkpoint={"allow_duplicates": True})
    assert len(rows) > len(expected)
    assert sorted(set(in_order(rows))) == expected


class InVain(ListSink):
    """A sink whose writer fails to prepare, once, after another sink has prepared that checkpoint."""

    folder: Path
    failed: ClassVar[bool] = False

    def writer(self, index, parallelism):
        return Watching(super().writer(index, parallelism), self.folder)


class Watching:
    """A part of a writer."""

    def __init__(self, writer, folder):
        self.write, self.close, self._prepare, self._folder = writer.write, writer.close, writer.prepare, folder

    def prepare(self, checkpoint):
        if not InVain.failed and list(self._folder.glob(".part-*.prepared")):
            InVain.failed = True
            raise OSError("not now")
        return self._prepare(checkpoint)


def test_nothing_stays_of_what_was_prepared_and_never_committed(tmp_path, expected):
    rows = []
    sink = InVain(rows, "to_list")
    sink.folder = tmp_path / "out"
    flow = numbered(rows, ef.write_parquet(tmp_path / "out"), rate=4_000, clock=slow_until(lambda: InVain.failed))
    (numbers,) = [node for node in flow.graph if node.name == "stateful_map"]
    Stream(flow, numbers).write(sink)
    flow.run(runtime="local", config=config(tmp_path)).wait("60s")
    assert InVain.failed
    assert in_order(rows) == in_order(pq.read_table(tmp_path / "out").to_pylist()) == expected
    assert not list((tmp_path / "out").glob(".*"))


class Wrecking(ListSink):
    """A sink that damages all checkpoints in the commit of the third one with state, which fails."""

    folder: Path
    wrecked = False

    def commit(self, checkpoint, committables):
        committed = super().commit(checkpoint, committables)
        need_files = [b".state" in manifest.read_bytes() for manifest in self.folder.glob("checkpoint-*/manifest")]
        if len(need_files) >= 3 and all(need_files) and not self.wrecked:
            self.wrecked = True
            for file in self.folder.glob("checkpoint-*/*.state"):
                file.write_bytes(file.read_bytes()[:-1])
            raise OSError("the sink has seen the checkpoints go")
        return committed


def test_job_that_lost_all_checkpoints_starts_over_and_retracts_all_that_it_has_committed(tmp_path, expected, caplog):
    rows = []
    sink = Wrecking(rows, "to_list")
    sink.folder = tmp_path / "f"
    flow = numbered(rows, sink, rate=4_000, clock=slow_until(lambda: sink.wrecked))
    flow.run(runtime="local", config=config(tmp_path)).wait("60s")
    assert sink.wrecked
    assert in_order(rows) == expected
    assert "it continues from the beginning" in caplog.text


def saved(folder, rows):
    """Return a savepoint after some committed rows."""
    job = numbered(rows, rate=2_000, clock=slow_until(lambda: False)).run(
        runtime="local", config=config(folder / "checkpoints", checkpoint={"interval": None})
    )
    for _ in range(3):
        job.checkpoint()
    job.savepoint(folder / "savepoint")
    job.cancel()
    job.wait("60s")
    return folder / "savepoint"


def test_job_that_lost_all_checkpoints_starts_over_from_its_savepoint(tmp_path, expected, caplog):
    before, rows = [], []
    savepoint = saved(tmp_path, before)
    sink = Wrecking(rows, "to_list")
    sink.folder = tmp_path / "f"
    flow = numbered(rows, sink, rate=4_000, clock=slow_until(lambda: sink.wrecked))
    flow.run(runtime="local", config=config(tmp_path), from_savepoint=savepoint).wait("60s")
    assert sink.wrecked
    assert in_order(before + rows) == expected
    assert f"it continues from {savepoint}" in caplog.text


def test_job_does_not_begin_from_a_damaged_savepoint(tmp_path):
    savepoint = saved(tmp_path, [])
    damaged = next(savepoint.glob("*.state"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(ef.CorruptStateError, match=rf"can't begin from {savepoint}: .*{damaged.name} has .* bytes, and .* were written"):
        numbered([]).run(runtime="local", config=config(tmp_path / "other"), from_savepoint=savepoint).wait("60s")


@pytest.mark.parametrize("damaged", [False, True])
def test_next_run_removes_what_a_killed_one_prepared_unless_a_checkpoint_may_need_it(tmp_path, expected, damaged):
    out, url = tmp_path / "out", str(tmp_path / "f")
    killed = ef.write_parquet(out)
    killed.start()
    killed.take_over(f"f {url}", list)
    killed.parts._claim.release()  # as the kernel does
    names = [f".part-{killed.run}-w-{name}" for name in ("0.inprogress", "1.prepared", "2.prepared")]
    for name in names:
        (out / name).touch()
    committables = {"write_parquet": [{"prepared": names[2], "final": "part-00000001-it"}]}
    SavedState(url, 3, RunClaim("killed")).complete(Manifest("f", 1, 0, 0.0, 16, {}, {}, {}, committables))
    if damaged:
        (tmp_path / "f" / "checkpoint-00000001" / "manifest").write_bytes(b"")
    numbered([], ef.write_parquet(out, append=True)).run(runtime="local", config=config(tmp_path)).wait("60s")
    assert in_order(pq.read_table(sorted(out.glob("part-*"))).to_pylist()) == expected
    left = sorted(path.name for path in out.glob(".*"))
    assert left == sorted([f".part-{killed.run}.owner", *names[1 if damaged else 2 :]])
