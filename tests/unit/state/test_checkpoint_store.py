"""Complete checkpoints have a manifest; missing and truncated files are errors; old checkpoints are swept."""

from __future__ import annotations

import errno
import os
import shutil
import uuid

import pyarrow as pa
import pytest

from evenflow.state.errors import CorruptStateError, StoreRefusedError
from evenflow.state.store import CheckpointStore


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    return CheckpointStore(str(tmp_path / "job") if request.param == "local" else f"memory://{uuid.uuid4().hex}/job")


def save(store, checkpoint, *values):
    with store.writing(checkpoint, "count-0") as writer:
        writer.write(pa.record_batch({"n": list(values)}))
    return writer.finish()


def values(store, checkpoint, entry):
    return [n for chunk in store.chunks(checkpoint, entry) for n in chunk["n"].to_pylist()]


def test_nothing_has_been_saved_at_first(store):
    assert store.completed() == []
    assert store.names() == []


def test_checkpoint_counts_once_its_manifest_is_there(store):
    entry = save(store, 3, 1, 2)
    assert store.completed() == []
    store.complete(3, b"manifest of 3")
    assert store.completed() == [3]
    assert store.manifest(3) == b"manifest of 3"
    assert values(store, 3, entry) == [1, 2]
    assert store.names() == ["checkpoint-00000003"]


def test_manifest_that_is_withdrawn_never_was(store):
    store.complete(3, b"all of it")
    store.withdraw(3)
    store.withdraw(4)
    assert store.completed() == []


def test_files_of_one_worker_do_not_overwrite_each_other(store):
    first, second = save(store, 1, 1), save(store, 1, 2)
    assert (values(store, 1, first), values(store, 1, second)) == ([1], [2])


def test_missing_files_are_named(store):
    entry = save(store, 1, 1)
    with pytest.raises(CorruptStateError, match=r"checkpoint-00000002/.* is gone"):
        values(store, 2, entry)
    with pytest.raises(CorruptStateError, match="checkpoint-00000002/manifest is gone"):
        store.manifest(2)


def test_only_what_is_kept_stays_and_what_may_be_under_way(store):
    for checkpoint in (1, 2, 3, 4, 12):
        save(store, checkpoint, checkpoint)
        if checkpoint != 2:
            store.complete(checkpoint, b"manifest")
    store.keep({3: [], 4: []}, above=4)
    assert store.completed() == [3, 4, 12]
    store.keep({}, above=12)
    assert store.completed() == []


def test_savepoint_is_a_copy_that_stands_alone(store, tmp_path):
    entry = save(store, 5, 7, 8)
    target = CheckpointStore(str(tmp_path / "savepoint"))
    store.copy(5, [entry], target, 0)
    store.keep({}, above=5)
    assert values(target, 0, entry) == [7, 8]
    with pytest.raises(CorruptStateError, match="is gone"):
        store.copy(5, [entry], target, 0)


def test_foreign_files_in_the_folder_of_checkpoints_do_not_matter(tmp_path):
    (tmp_path / "notes.txt").touch()
    (tmp_path / "checkpoint-draft").mkdir()
    store = CheckpointStore(str(tmp_path))
    store.complete(1, b"manifest")
    store.keep({1: []}, above=5)
    assert store.completed() == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-00000001", "checkpoint-draft", "notes.txt"]


def test_folder_that_can_not_be_written_raises(tmp_path):
    (tmp_path / "file").touch()
    store = CheckpointStore(str(tmp_path / "file"))
    with pytest.raises(OSError, match="file"):
        save(store, 1, 1)
    with pytest.raises(OSError, match="file"):
        store.complete(1, b"manifest")
    assert store.completed() == []


def test_folder_that_vanishes_is_missing_and_not_refused_for_good(tmp_path):
    store = CheckpointStore(str(tmp_path / "store"))
    store.claim(1, b"me")
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(FileNotFoundError):
        store.note(1, "beat", b"alive")
    assert not store.claimed(1)


def test_unknown_protocol_is_refused():
    with pytest.raises(StoreRefusedError, match="flying"):
        CheckpointStore("flying://saucer")


def test_manifest_is_never_written_over(store):
    store.complete(3, b"the first")
    with pytest.raises(FileExistsError):
        store.complete(3, b"the second")
    assert store.manifest(3) == b"the first"
    store.keep({}, above=2)
    assert store.completed() == [3]


def test_manifest_is_not_written_over_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store = CheckpointStore(str(tmp_path))
    store.complete(3, b"the first")
    with pytest.raises(FileExistsError):
        store.complete(3, b"the second")
    assert store.manifest(3) == b"the first"
    assert [path.name for path in (tmp_path / "checkpoint-00000003").iterdir()] == ["manifest"]


def test_each_term_is_claimed_once_and_has_notes(store):
    assert (store.claims(), store.claim_of(1), store.claimed(1)) == ([], None, False)
    store.claim(1, b"the first")
    with pytest.raises(FileExistsError):
        store.claim(1, b"another")
    store.claim(1, b"the first")  # its own reply was lost
    store.claim(2, b"the second")
    assert (store.claims(), store.claim_of(1), store.claim_of(2)) == ([1, 2], b"the first", b"the second")
    assert [store.claimed(term) for term in (1, 2, 3)] == [True, True, False]
    for beat in (b"1", b"2"):
        store.note(1, "beat", beat)
    assert (store.noted(1, "beat"), store.noted(2, "beat"), store.claims()) == (b"2", None, [1, 2])
    assert store.completed() == []
