"""Durable writes are on the disk when the call returns: a file before its name, and its name before the next step."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from evenflow.connectors.exchange.exchange_folder import EndMarker, ExchangeFolder
from evenflow.connectors.formats.parquet_sink import write_parquet
from evenflow.connectors.spark.delivery import Delivery
from evenflow.connectors.spark.sink import to_spark
from evenflow.engine.batch import Batch
from evenflow.state.durable import make_folder, write_durably
from evenflow.state.store import CheckpointStore


class Disk:
    """The files and names that a machine would lose in a power failure."""

    def __init__(self, monkeypatch):
        self._synced, self.forgotten, self.named = set(), set(), 0
        for name in ("replace", "rename", "link"):
            monkeypatch.setattr(os, name, self._naming(getattr(os, name)))
        monkeypatch.setattr(os, "mkdir", self._making(os.mkdir))
        monkeypatch.setattr(os, "unlink", self._removing(os.unlink))
        monkeypatch.setattr(os, "fsync", self._syncing(os.fsync))

    def _naming(self, call):
        def wrapped(source, target, **options):
            whole = Path(source).stat().st_ino in self._synced
            call(source, target, **options)
            self._note(target)
            if not whole:
                self.forgotten.add(f"what is in {target}")

        return wrapped

    def _making(self, call):
        def wrapped(path, *arguments, **options):
            call(path, *arguments, **options)
            self._note(path)

        return wrapped

    def _removing(self, call):
        def wrapped(path, **options):
            call(path, **options)
            self.forgotten.discard(os.fspath(path))

        return wrapped

    def _syncing(self, call):
        def wrapped(descriptor):
            call(descriptor)
            self._synced.add(os.fstat(descriptor).st_ino)
            folder = Path(f"/proc/self/fd/{descriptor}").readlink()
            self.forgotten -= {path for path in self.forgotten if Path(path).parent == folder}

        return wrapped

    def _note(self, path):
        self.named += 1
        self.forgotten.add(os.fspath(path))


def manifest(folder):
    with CheckpointStore(str(folder / "a" / "job")).writing(1, "count-0") as writer:
        writer.write(pa.record_batch({"n": [1]}))
    CheckpointStore(str(folder / "a" / "job")).complete(1, b"manifest")


def void(folder):
    store = CheckpointStore(str(folder))
    store.complete(1, b"manifest")
    store.declare_void(0)


def savepoint(folder):
    store = CheckpointStore(str(folder / "job"))
    with store.writing(1, "count-0") as writer:
        writer.write(pa.record_batch({"n": [1]}))
    store.copy(1, [writer.finish()], CheckpointStore(str(folder / "savepoint")), 0)
    CheckpointStore(str(folder / "savepoint")).complete(0, b"manifest")


def part(sink):
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"n": [1]})))
    sink.commit(1, writer.prepare(1))
    return sink


def parquet(folder):
    part(write_parquet(folder / "a" / "out"))


def spark(folder):
    part(to_spark(path=folder / "out"))


def taken_back(folder):
    part(to_spark(path=folder / "out")).retract(0)


def end_of_a_stream(folder):
    exchange = ExchangeFolder(folder / "a" / "out")
    exchange.create()
    exchange.finish(EndMarker(3))


def delivery(folder):
    exchange = ExchangeFolder(folder / "out")
    exchange.create()
    Delivery(None, exchange, print, "to_spark").begin()


@pytest.mark.parametrize(
    "write", [manifest, void, savepoint, parquet, spark, taken_back, end_of_a_stream, delivery], ids=lambda write: write.__name__
)
def test_nothing_that_is_written_to_stay_is_forgotten(write, tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    write(tmp_path)
    assert disk.named
    assert not disk.forgotten


def test_file_that_can_not_be_written_leaves_the_one_before_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "mark"
    write_durably(path, b"1")

    def full(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_durably(path, b"2")
    assert ([found.name for found in tmp_path.iterdir()], path.read_bytes()) == (["mark"], b"1")


def test_file_that_is_to_be_the_only_one_of_its_name_is_refused_where_there_is_one(tmp_path):
    write_durably(tmp_path / "0", b"1", exclusive=True)
    with pytest.raises(FileExistsError):
        write_durably(tmp_path / "0", b"2", exclusive=True)
    assert ([found.name for found in tmp_path.iterdir()], (tmp_path / "0").read_bytes()) == (["0"], b"1")


def test_folder_that_is_there_is_made_again_and_a_file_in_its_place_is_named(tmp_path):
    assert make_folder(make_folder(tmp_path / "a" / "b")) == Path(tmp_path, "a", "b")
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="file"):
        make_folder(tmp_path / "file")
