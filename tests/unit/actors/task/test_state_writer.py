"""Chunks are written to disk in a separate thread; a failed write is a report, not the end of the thread."""

from __future__ import annotations

import errno
import os
import threading

import pyarrow as pa
import pytest
from patience import patience

from evenflow.actors.task.state_writer import StateWriter
from evenflow.engine.batch import Batch
from evenflow.engine.protocol.effects import Prepared
from evenflow.engine.snapshots import chain
from evenflow.engine.snapshots.chain import replacing
from evenflow.scheduler.protocol.messages import CheckpointFailed
from evenflow.state.store import CheckpointStore


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(str(tmp_path / "job"))


@pytest.fixture
def writer(store):
    writer = StateWriter(store, "count-0")
    yield writer
    writer.close()


def chunk(*values):
    return Batch(pa.record_batch({"n": list(values)}))


def values(store, report):
    (file,) = report.files
    return [n for piece in store.chunks(report.checkpoint, file) for n in piece["n"].to_pylist()]


def test_report_comes_back_with_the_file_that_holds_all_chunks(store, writer):
    for n in range(20):
        writer.write(3, chunk(n, n + 100))
    writer.finish(Prepared(3, {"out": ["rows"]}, 17))
    (report,) = writer.flush()
    assert (report.checkpoint, report.committables, report.watermark) == (3, {"out": ["rows"]}, 17)
    assert report.files[0].keys == 40
    assert values(store, report) == [value for n in range(20) for value in (n, n + 100)]
    assert writer.take() == []


def test_small_pieces_with_equal_columns_are_written_as_one_chunk(monkeypatch, store, writer):
    monkeypatch.setattr(chain, "CHUNK_ROWS", 8)
    for n in range(10):
        writer.write(3, chunk(n, n + 100))
    writer.write(3, Batch(replacing(pa.record_batch({"n": [7]}), ["n"])))
    writer.finish(Prepared(3, {}))
    (report,) = writer.flush()
    assert [piece.num_rows for piece in store.chunks(3, report.files[0])] == [8, 8, 4, 1]
    assert values(store, report) == [*(value for n in range(10) for value in (n, n + 100)), 7]


def test_without_state_there_is_no_file(tmp_path, writer):
    writer.finish(Prepared(3, {}))
    assert writer.flush() == [Prepared(3, {})]
    assert not (tmp_path / "job").exists()


def test_checkpoints_keep_their_order(store, writer):
    for checkpoint in (1, 2, 3):
        if checkpoint != 2:
            writer.write(checkpoint, chunk(checkpoint))
        writer.finish(Prepared(checkpoint, {}))
    reports = writer.flush()
    assert [report.checkpoint for report in reports] == [1, 2, 3]
    assert [values(store, report) for report in reports if report.files] == [[1], [3]]


def test_a_file_that_can_not_be_written_is_reported_and_the_next_one_is_tried(tmp_path, store, writer):
    in_the_way = tmp_path / "job"
    in_the_way.touch()
    for n in range(3):
        writer.write(1, chunk(n))
    writer.finish(Prepared(1, {"out": ["rows"]}))
    (failed,) = writer.flush()
    assert isinstance(failed, CheckpointFailed)
    assert (failed.checkpoint, failed.committables) == (1, {"out": ["rows"]})
    assert "Error: " in failed.problem
    in_the_way.unlink()
    writer.write(2, chunk(7))
    writer.finish(Prepared(2, {}))
    (report,) = writer.flush()
    assert values(store, report) == [7]


def test_closing_leaves_behind_what_is_not_finished(store):
    writer = StateWriter(store, "count-0")
    for n in range(100):
        writer.write(1, chunk(n))
    writer.close()
    assert store.completed() == []
    assert not writer._thread.is_alive()


@pytest.mark.few(5)
@pytest.mark.parametrize("chunks", [1, 3, 3_000])
@pytest.mark.parametrize("step", ["open", "write", "ftruncate", "fsync", "close"])
def test_disk_that_is_full_at_any_step_of_a_file_fails_that_checkpoint_and_no_other(monkeypatch, store, writer, step, chunks):
    does = getattr(os, step)

    def without_room(*args, **options):
        if step == "open" and not str(args[0]).endswith(".state"):
            return does(*args, **options)
        if step == "close":
            does(*args)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for checkpoint in (1, 3):
        with monkeypatch.context() as disk:
            disk.setattr(os, step, without_room)
            for n in range(chunks):
                writer.write(checkpoint, chunk(*range(n, n + 100)))
            writer.finish(Prepared(checkpoint, {"out": ["rows"]}))
            failed = within_a_minute(writer.flush)
        assert [(report.checkpoint, report.committables) for report in failed] == [(checkpoint, {"out": ["rows"]})]
        assert "No space left on device" in failed[0].problem
        writer.write(checkpoint + 1, chunk(7))
        writer.finish(Prepared(checkpoint + 1, {}))
        (report,) = within_a_minute(writer.flush)
        assert values(store, report) == [7]


def within_a_minute(flush):
    """Return the result of `flush`; the test fails if it doesn't return."""
    found = []
    thread = threading.Thread(target=lambda: found.extend(flush()), daemon=True)
    thread.start()
    thread.join(patience(60))
    assert not thread.is_alive(), "a part of a checkpoint is neither written nor reported as failed"
    return found
