"""A job's checkpoints on disk: their runs, retention, and savepoints."""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.actors.task.saved_state import SavedState, SupersededError
from evenflow.engine.errors import FlowError
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.scheduler.protocol.manifest import Manifest, TaskEntry
from evenflow.scheduler.record.restoring.fitting import Allowed
from evenflow.scheduler.record.restoring.run_claim import RunClaim
from evenflow.scheduler.record.restoring.terms import first_attempt
from evenflow.state.files import StateFile
from evenflow.state.store import CheckpointStore, path_from_sibling


def manifest(checkpoint, *files):
    entries = {"count": (TaskEntry(files=tuple(files)),)}
    return Manifest("f", checkpoint, 0, 0.0, 4, {}, entries, {"count": RoutingTable(np.zeros(4, np.uint16))}, {"out": ["rows"]})


def plan(name="count"):
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).named(name).write(ef.to_list([]))
    return flow.plan(config=ef.JobConfig(key_groups=4, combine=False))


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "checkpoints")


def test_the_newest_checkpoint_is_one_of_this_run(url):
    before, now = SavedState(url, 3, RunClaim("yesterday")), SavedState(url, 3, RunClaim("today"))
    assert before.complete(manifest(1)) is None
    assert (before.newest().checkpoint, now.newest(), now.last) == (1, None, 1)
    assert now.complete(manifest(2)) is None
    assert now.newest().checkpoint == 2
    assert now.newest(below=2) is None, "what another run saved is none of this one's"


def test_manifest_that_can_not_be_read_is_skipped_with_a_warning(url, tmp_path, caplog):
    saved = SavedState(url, 3, RunClaim("run"))
    for checkpoint in (1, 2):
        saved.complete(manifest(checkpoint))
    (tmp_path / "checkpoints" / "checkpoint-00000002" / "manifest").write_bytes(b"evenflow manifest 3\nand nothing else")
    with caplog.at_level(logging.WARNING):
        assert saved.newest().checkpoint == 1
    assert "checkpoint 2 is skipped: the manifest is corrupt" in caplog.text


def test_a_void_checkpoint_is_never_restored_and_its_number_is_not_reused(url):
    saved = SavedState(url, 3, RunClaim("run"))
    for checkpoint in (1, 2, 3):
        saved.complete(manifest(checkpoint))
    assert saved.newest().checkpoint == 3
    for _ in range(2):
        saved.declare_void(after=1)
        assert (saved.newest().checkpoint, saved.newest(below=3).checkpoint, saved.last) == (1, 1, 3)
    saved.complete(manifest(4))
    assert (saved.newest().checkpoint, saved.newest(below=4).checkpoint, saved.last) == (4, 1, 4)


def test_void_checkpoint_stays_void_when_the_mark_is_deleted(url, tmp_path):
    saved = SavedState(url, 3, RunClaim("run"))
    for checkpoint in (1, 2):
        saved.complete(manifest(checkpoint))
    saved.declare_void(after=1)
    (tmp_path / "checkpoints" / "checkpoint-00000002" / "void").unlink()
    assert saved.newest().checkpoint == 1, "its rows were taken back, so who went on from it would lose them"


def test_the_configured_number_of_checkpoints_is_kept(url):
    saved = SavedState(url, 2, RunClaim("run"))
    for checkpoint in range(1, 6):
        saved.complete(manifest(checkpoint))
    assert CheckpointStore(url).completed() == [4, 5]


def test_file_stays_while_a_kept_checkpoint_needs_it(url, tmp_path):
    saved, store = SavedState(url, 2, RunClaim("run")), CheckpointStore(url)
    chains = {0: []}

    def complete(checkpoint, *, whole):
        with store.writing(checkpoint, "count-0") as writer:
            writer.write(pa.record_batch({"key": [checkpoint]}))
        before = [] if whole else [replace(f, path=path_from_sibling(f.path, checkpoint - 1)) for f in chains[checkpoint - 1]]
        chains[checkpoint] = [*before, writer.finish()]
        assert saved.complete(manifest(checkpoint, *chains[checkpoint])) is None
        for kept in store.completed():
            assert all(list(store.chunks(kept, file)) for file in chains[kept])
        return sorted(int(path.parent.name[-8:]) for path in (tmp_path / "checkpoints").glob("*/*.state"))

    assert complete(1, whole=True) == [1]
    assert [complete(checkpoint, whole=False) for checkpoint in (2, 3, 4)] == [[1, 2], [1, 2, 3], [1, 2, 3, 4]]
    assert store.completed() == [3, 4]
    assert complete(5, whole=True) == [1, 2, 3, 4, 5], "4 is still kept"
    assert complete(6, whole=False) == complete(7, whole=False)[:-1] == [1, 2, 3, 4, 5, 6]
    assert store.completed() == [4, 6, 7], "4 is the newest that would be left without the file of 5"
    again = SavedState(url, 2, RunClaim("run"))
    chains[8] = [replace(f, path=path_from_sibling(f.path, 7)) for f in chains[7]]
    assert again.complete(manifest(8, *chains[8])) is None, "who comes back reads in the manifests what is needed"
    assert store.completed() == [4, 7, 8]
    assert [len(list(store.chunks(8, file))) for file in chains[8]] == [1, 1, 1]
    assert complete(9, whole=True) == [5, 6, 7, 9], "8 does without the file of 9"
    assert complete(10, whole=True) == [9, 10]


def test_manifest_that_can_not_be_written_is_a_problem_and_does_not_count(url, tmp_path):
    (tmp_path / "checkpoints").touch()
    saved = SavedState(url, 2, RunClaim("run"))
    assert "checkpoints" in saved.complete(manifest(1))
    assert saved.newest() is None


def test_job_without_a_folder_has_nothing_saved():
    saved = SavedState(None, 2, RunClaim("run"))
    assert (saved.last, saved.newest(), saved.restored(None, plan())) == (0, None, {})
    assert saved.complete(manifest(1)) == "the job has no folder for checkpoints"


def test_savepoint_is_a_copy_without_what_its_job_commits(url, tmp_path):
    saved, folder = SavedState(url, 2, RunClaim("run")), tmp_path / "savepoint"
    saved.complete(manifest(1, written(url, 1)))
    assert saved.copy(saved.newest(), str(folder)) is None
    opened = SavedState(None, 2, RunClaim("another")).open_savepoint(str(folder), plan(), Allowed())
    assert (opened.checkpoint, dict(opened.committables), len(opened.files)) == (1, {}, 1)
    problem = f"{folder} is not empty, it has {', '.join(CheckpointStore(str(folder)).names())}: give the savepoint its own folder"
    assert saved.copy(saved.newest(), str(folder)) == problem


def test_savepoint_that_a_lost_coordinator_has_begun_is_replaced_by_the_next_one(url, tmp_path):
    folder = tmp_path / "savepoint"
    lost, after, other = (SavedState(url, 2, RunClaim("run", start)) for start in ("one", "one", "two"))
    lost.complete(manifest(1, written(url, 1)))
    assert lost.copy(lost.newest(), str(folder), again=True) is None
    after.complete(manifest(2, written(url, 2)))
    assert after.copy(after.newest(), str(folder), again=True) is None
    assert SavedState(None, 2, RunClaim("x")).open_savepoint(str(folder), plan(), Allowed()).checkpoint == 2
    assert f"{folder} is not empty, it has " in other.copy(after.newest(), str(folder), again=True)
    assert SavedState(None, 2, RunClaim("x")).open_savepoint(str(folder), plan(), Allowed()).checkpoint == 2


def test_savepoint_that_can_not_be_written_is_a_problem(url, tmp_path):
    saved, file = SavedState(url, 2, RunClaim("run")), written(url, 1)
    saved.complete(manifest(1, file))
    (tmp_path / "checkpoints" / "checkpoint-00000001" / file.path).unlink()
    assert file.path in saved.copy(saved.newest(), str(tmp_path / "savepoint"))


def test_checkpoint_that_is_being_copied_is_kept_until_it_is_let_go(url):
    saved = SavedState(url, 1, RunClaim("run"))
    saved.complete(manifest(1))
    saved.hold(1)
    for checkpoint in (2, 3):
        saved.complete(manifest(checkpoint))
        assert CheckpointStore(url).completed() == [1, checkpoint]
    saved.let_go(1)
    saved.complete(manifest(4))
    assert CheckpointStore(url).completed() == [4]


def written(url, checkpoint):
    with CheckpointStore(url).writing(checkpoint, "count-0") as writer:
        pass
    return writer.finish()


def folders(tmp_path):
    return sorted(path.name for path in (tmp_path / "checkpoints").iterdir())


def test_files_of_a_failed_checkpoint_are_removed_even_if_they_arrive_late(url, tmp_path):
    saved = SavedState(url, 2, RunClaim("run"))
    saved.complete(manifest(1, written(url, 1)))
    for checkpoint in (2, 3):
        written(url, checkpoint)
        saved.discard(checkpoint)
        written(url, 2)  # by a worker of a finished attempt
    assert folders(tmp_path) == ["checkpoint-00000001", "checkpoint-00000002"]
    saved.discard(4)
    assert folders(tmp_path) == ["checkpoint-00000001"]
    assert list(CheckpointStore(url).chunks(1, saved.newest().files[0])) == []


def test_files_of_a_checkpoint_that_a_lost_coordinator_had_begun_are_removed(url, tmp_path):
    SavedState(url, 2, RunClaim("run")).complete(manifest(3, written(url, 3)))
    for checkpoint in (2, 4, 5):
        written(url, checkpoint)
    SavedState(url, 2, RunClaim("run")).discard_unfinished()
    assert folders(tmp_path) == ["checkpoint-00000002", "checkpoint-00000003"], "earlier ones may be needed"


def test_no_checkpoint_is_void_if_the_disk_has_no_room_for_the_mark(url, monkeypatch):
    saved = SavedState(url, 2, RunClaim("run"))
    for checkpoint in (1, 2):
        saved.complete(manifest(checkpoint))

    def without_room(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", without_room)
        with pytest.raises(OSError, match="No space left"):
            saved.declare_void(after=1)
    assert (saved.newest().checkpoint, saved.last) == (2, 2)
    saved.declare_void(after=1)
    assert (saved.newest().checkpoint, saved.last) == (1, 2)


def test_state_that_fits_nowhere_is_refused_unless_it_may_be_lost(url):
    SavedState(url, 2, RunClaim("run")).complete(manifest(1, StateFile("count-0.state", 1, "", 1)))
    folder = f"{url}/checkpoint-00000001"
    for name, allowed in (("count", False), ("total", True)):
        assert SavedState(None, 2, RunClaim("")).open_savepoint(folder, plan(name), Allowed(lost_state=allowed)).checkpoint == 1
    with pytest.raises(FlowError, match=r"has state of `count`, and the flow has no such operator: name it with .named"):
        SavedState(None, 2, RunClaim("")).open_savepoint(folder, plan("total"), Allowed())
    with pytest.raises(FlowError, match=r"job `f` can't begin from .*/nowhere: .* is gone"):
        SavedState(None, 2, RunClaim("")).open_savepoint(f"{url}/nowhere", plan(), Allowed())


def of_term(term, checkpoint):
    return replace(manifest(checkpoint), attempt=first_attempt(term))


def test_coordinator_that_was_taken_for_lost_saves_nothing_more(url):
    first, second = SavedState(url, 3, RunClaim("run")), SavedState(url, 3, RunClaim("run"))
    assert first.complete(manifest(1)) is None
    assert second.take_over().checkpoint == 1
    with pytest.raises(SupersededError, match="of term 0, was considered lost, and another has begun"):
        first.complete(manifest(2))
    with pytest.raises(SupersededError):
        first.stay_in_charge()
    second.stay_in_charge()
    assert second.newest().checkpoint == 1
    assert second.complete(of_term(1, 2)) is None
    third = SavedState(url, 3, RunClaim("run"))
    assert (third.take_over().attempt, third.term) == (first_attempt(1), 2)


def test_checkpoint_saved_while_another_coordinator_begins_is_void_and_not_overwritten(url, monkeypatch):
    first, second, third = (SavedState(url, 3, RunClaim("run")) for _ in range(3))
    assert first.complete(manifest(1)) is None
    write = CheckpointStore.complete

    def slowly(store, checkpoint, data):
        monkeypatch.undo()
        assert second.take_over().checkpoint == 1
        write(store, checkpoint, data)

    monkeypatch.setattr(CheckpointStore, "complete", slowly)
    with pytest.raises(SupersededError):
        first.complete(manifest(2))
    assert (second.newest().checkpoint, second.last) == (1, 2)
    assert "FileExistsError" in second.complete(of_term(1, 2)), "its number is taken, and who needs it is not known"
    assert third.take_over().checkpoint == 1
    assert third.complete(of_term(2, 3)) is None
    assert [third.newest(below).checkpoint for below in (None, 3, 2)] == [3, 1, 1]


def test_a_coordinator_lost_before_it_noted_its_begin_does_not_limit_later_ones(url):
    first, second, third = (SavedState(url, 3, RunClaim("run")) for _ in range(3))
    CheckpointStore(url).claim(1, RunClaim("run").to_bytes())
    assert second.take_over() is None
    assert second.complete(of_term(2, 1)) is None
    assert third.take_over().checkpoint == 1
    assert (second.term, third.term) == (2, 3)
    with pytest.raises(SupersededError):
        first.stay_in_charge()


def test_damaged_note_of_a_coordinator_is_skipped_with_a_warning(url, tmp_path, caplog):
    first, second, third = (SavedState(url, 3, RunClaim("run")) for _ in range(3))
    assert first.complete(manifest(1)) is None
    assert second.take_over().checkpoint == 1
    (note,) = (tmp_path / "checkpoints" / "terms").glob("*.begun")
    note.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        assert third.take_over().checkpoint == 1
    assert "a note of an earlier coordinator is skipped" in caplog.text
