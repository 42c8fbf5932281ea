"""The effects and answers of a job's storage: manifests, the sinks' commits and retractions, uncommitted output, savepoints."""

from __future__ import annotations

import logging
from queue import SimpleQueue

import pytest
from patience import patience

import evenflow as ef
from evenflow.actors.job.first_manifest import Savepoint
from evenflow.actors.job.job_storage import JobStorage
from evenflow.actors.job.run_memory import RunMemory
from evenflow.actors.job.storage_thread import StorageThread
from evenflow.actors.task.saved_state import SAVEPOINT, SupersededError
from evenflow.engine.errors import FlowError, JobError
from evenflow.scheduler.protocol.effects import Commit, CopySavepoint, Discard, FindOlder, RememberStart, RestoreSinks, Save
from evenflow.scheduler.protocol.manifest import TaskEntry
from evenflow.scheduler.protocol.storage_answers import Committed, ManifestSaved, OlderFound, SavepointCopied, SinksRestored
from evenflow.scheduler.record.checkpoints import Checkpoints
from evenflow.scheduler.record.restoring.run_claim import RunClaim
from evenflow.state.store import CheckpointStore

PATIENCE = patience(30)


class ScriptedSink(type(ef.to_list([]))):
    """A sink that records its calls in `calls`, and fails in chosen ones."""

    def __init__(self, name, calls, *, retractable=True, fails=()):
        super().__init__([], name)
        self.name, self.calls, self._retractable, self.fails = name, calls, retractable, dict(fails)

    @property
    def retractable(self):
        return self._retractable

    def commit(self, checkpoint, committables):
        return self._call("commit", checkpoint, [f"{item} of {self.name}" for item in committables])

    def retract(self, after):
        return self._call("retract", after, [f"less than {after} of {self.name}"])

    def sweep(self):
        self._call("sweep", None, None)

    def take_over(self, job, committables):
        self._call("take over", job, None)

    def _call(self, what, argument, answer):
        self.calls.append((self.name, what, argument))
        if what in self.fails:
            raise self.fails[what]
        return answer


class Stored:
    """The storage of a job with the sinks `left` and `right`; `later`: answers from other threads."""

    def __init__(self, folder, *, left=None, right=None, savepoint=None, **checkpoint):
        self.calls, self.memory, self.later = [], RunMemory(), SimpleQueue()
        flow = ef.Dataflow("f")
        rows = flow.read(ef.from_items([1])).named("rows")
        for name, options in (("left", left), ("right", right)):
            rows.write(ScriptedSink(name, self.calls, **(options or {})))
        saves = None if folder is None else str(folder)
        self.config = ef.JobConfig(checkpoint=ef.CheckpointConfig(saves, interval=None, **checkpoint))
        self.plan = flow.plan(config=self.config)
        self.storage = JobStorage(self.plan, self.config, savepoint=savepoint, claim=RunClaim("run"), memory=self.memory)

    def perform(self, effect):
        return self.storage.perform(effect, self.later.put)

    def manifest(self, checkpoint, **committables):
        checkpoints = Checkpoints()
        checkpoints.last = checkpoint - 1
        checkpoints.begin(0.0, "by hand")
        checkpoints.pending.prepared = {task.name: TaskEntry([]) for task in self.plan.tasks}
        checkpoints._committables = committables
        return checkpoints.manifest(self.plan, 0, 0.0, {})

    def save(self, *checkpoints):
        """Write manifests of the checkpoints and return the newest."""
        for checkpoint in checkpoints:
            assert self.perform(Save(self.manifest(checkpoint, left=[f"rows {checkpoint}"]))) == ManifestSaved(checkpoint)
        return self.storage._saved.newest()

    def another(self):
        """Return the storage of a coordinator that replaces this one."""
        back = JobStorage(self.plan, self.config, claim=RunClaim("run"), memory=self.memory)
        back.restore_point(takes_over=True)
        return back


SWEPT = [("left", "sweep", None), ("right", "sweep", None)]


def taken_over(folder):
    return [(name, "take over", f"f {folder}/f" if folder is not None else "f ") for name in ("left", "right")]


def test_every_sink_commits_what_is_its_and_what_they_deliver_is_answered(tmp_path):
    job = Stored(tmp_path)
    answer = job.perform(Commit(3, {"left": ["a", "b"]}, completed=2))
    assert answer == Committed(3, (("left", "a of left"), ("left", "b of left")))
    assert job.calls == [("left", "commit", 3), ("right", "commit", 3)]
    assert (job.memory.record.committed, job.memory.record.completed) == (3, 2)


def test_nothing_is_swept_before_the_last_commit(tmp_path):
    job = Stored(tmp_path)
    job.perform(Commit(1, {}))
    assert ("left", "sweep", None) not in job.calls
    job.perform(Commit(2, {}, last=True))
    assert job.calls[-2:] == SWEPT


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        pytest.param(ZeroDivisionError("no"), r"^sink `right` could not commit checkpoint 1: ZeroDivisionError: no$", id="any error"),
        pytest.param(JobError("the table is locked"), "^the table is locked$", id="an error of its own"),
    ],
)
def test_sink_that_can_not_commit_is_named_and_nothing_is_delivered(tmp_path, raised, words):
    job = Stored(tmp_path, right={"fails": {"commit": raised}})
    answer = job.perform(Commit(1, {"left": ["a"]}, last=True))
    assert (answer.checkpoint, answer.deliveries) == (1, ())
    with pytest.raises(JobError, match=words):
        raise answer.error
    assert ("left", "sweep", None) not in job.calls, "what is prepared may be committed yet"


def test_number_of_a_checkpoint_is_noted_before_the_first_sink_commits_it(tmp_path, monkeypatch):
    job = Stored(tmp_path)

    def forgetful(record):
        raise OSError("the memory does not answer")

    monkeypatch.setattr(job.memory, "keep", forgetful)
    answer = job.perform(Commit(1, {}))
    assert str(answer.error) == "job `f` could not commit checkpoint 1: OSError: the memory does not answer"
    assert job.calls == []


def test_an_earlier_checkpoint_that_is_committed_again_does_not_make_the_newest_forgotten(tmp_path):
    job = Stored(tmp_path)
    job.perform(Commit(3, {}, completed=3))
    job.perform(RestoreSinks(1, job.manifest(2)))
    assert (job.memory.record.committed, job.memory.record.completed) == (3, 3)


def test_sinks_commit_what_an_attempt_begins_from_and_forget_what_is_behind(tmp_path):
    job = Stored(tmp_path)
    answer = job.perform(RestoreSinks(2, job.manifest(5, left=["a"])))
    assert answer == SinksRestored(2, (("left", "a of left"),))
    assert job.calls == [("left", "commit", 5), ("right", "commit", 5), *SWEPT, *taken_over(tmp_path)]


def test_sinks_of_a_job_that_begins_from_nothing_commit_nothing():
    job = Stored(None)
    assert job.perform(RestoreSinks(0, None)) == SinksRestored(0)
    assert job.calls == [*SWEPT, *taken_over(None)]


def test_leftovers_of_killed_runs_are_taken_over_once(tmp_path):
    job = Stored(tmp_path)
    job.perform(RestoreSinks(0, None))
    job.calls.clear()
    job.perform(RestoreSinks(1, None))
    assert job.calls == SWEPT


def test_sinks_retract_later_rows_before_they_repeat_the_commit_of_the_checkpoint(tmp_path):
    job = Stored(tmp_path)
    job.save(1, 2, 3)
    answer = job.perform(RestoreSinks(2, job.manifest(1, left=["a"]), retracts=3))
    assert [what[1:] for what in job.calls[:4]] == [("retract", 1), ("retract", 1), ("commit", 1), ("commit", 1)]
    assert answer == SinksRestored(2, (("left", "less than 1 of left"), ("right", "less than 1 of right"), ("left", "a of left")))
    assert job.storage._saved.newest().checkpoint == 1, "no job continues from a retracted checkpoint"


def test_nothing_is_retracted_unless_all_sinks_can_retract(tmp_path):
    job = Stored(tmp_path, right={"retractable": False})
    job.save(1, 2)
    answer = job.perform(RestoreSinks(2, job.manifest(1), retracts=2))
    assert answer.hopeless
    assert "but sink `right` can't retract what it has committed since" in str(answer.error)
    assert job.calls == []
    assert job.storage._saved.newest().checkpoint == 2


def test_sink_that_can_not_retract_is_skipped_where_duplicates_are_allowed(tmp_path, caplog):
    job = Stored(tmp_path, right={"retractable": False}, allow_duplicates=True)
    job.save(1, 2)
    answer = job.perform(RestoreSinks(2, job.manifest(1), retracts=2))
    assert answer.error is None
    assert [what for what in job.calls if what[1] == "retract"] == [("left", "retract", 1)]
    assert "rows that sink `right` has committed after checkpoint 1 will be repeated" in caplog.text


@pytest.mark.parametrize("step", ["retract", "commit"])
def test_sink_that_can_not_be_restored_is_an_error_that_another_attempt_may_not_meet(tmp_path, step):
    job = Stored(tmp_path, right={"fails": {step: OSError("the table is locked")}})
    job.save(1, 2)
    answer = job.perform(RestoreSinks(2, job.manifest(1, left=["a"]), retracts=2))
    assert "the table is locked" in str(answer.error)
    assert not answer.hopeless
    assert ("left", "sweep", None) not in job.calls


@pytest.mark.parametrize("step", ["sweep", "take over"])
def test_leftovers_that_can_not_be_removed_are_a_warning_and_no_failure(tmp_path, step, caplog):
    job = Stored(tmp_path, left={"fails": {step: OSError("read-only")}})
    with caplog.at_level(logging.WARNING):
        assert job.perform(RestoreSinks(0, None)).error is None
    assert "sink `left` could not remove output" in caplog.text
    assert ("right", step, None if step == "sweep" else f"f {tmp_path}/f") in job.calls


def test_manifest_that_can_not_be_written_is_a_problem(tmp_path):
    (tmp_path / "f").touch()
    job = Stored(tmp_path)
    answer = job.perform(Save(job.manifest(1)))
    assert answer.checkpoint == 1
    assert f"{tmp_path}/f" in answer.problem


def test_files_of_a_checkpoint_that_failed_are_removed(tmp_path):
    job = Stored(tmp_path)
    with CheckpointStore(f"{tmp_path}/f").writing(1, "rows-0"):
        pass
    assert job.perform(Discard(1)) is None
    assert list((tmp_path / "f").glob("checkpoint-*")) == []


def test_the_checkpoint_before_one_that_is_damaged_is_found_or_the_beginning(tmp_path):
    job = Stored(tmp_path)
    job.save(1, 2)
    found = job.perform(FindOlder(2, "a file is gone"))
    assert (found.checkpoint, found.problem, found.manifest.checkpoint, found.error) == (2, "a file is gone", 1, None)
    assert job.perform(FindOlder(1, "a file is gone")) == OlderFound(1, "a file is gone")


def test_damaged_savepoint_leaves_nothing_to_go_on_from(tmp_path):
    before = Stored(tmp_path / "before")
    before.perform(CopySavepoint(str(tmp_path / "savepoint"), before.save(1)))
    assert before.later.get(timeout=PATIENCE) == SavepointCopied(1)
    job = Stored(tmp_path / "now", savepoint=Savepoint(str(tmp_path / "savepoint")))
    point = job.storage.restore_point()
    assert (point.manifest.checkpoint, point.from_savepoint, point.takes_over) == (1, True, False)
    found = job.perform(FindOlder(SAVEPOINT, "a file is gone"))
    assert str(found.error) == f"job `f` can't begin from {tmp_path / 'savepoint'}: a file is gone"


def test_savepoint_that_can_not_be_copied_says_why_and_its_checkpoint_is_kept_no_longer(tmp_path):
    (tmp_path / "savepoint").mkdir()
    (tmp_path / "savepoint" / "mine").touch()
    job = Stored(tmp_path / "saved", kept=1)
    assert job.perform(CopySavepoint(str(tmp_path / "savepoint"), job.save(1))) is None
    answer = job.later.get(timeout=PATIENCE)
    assert answer == SavepointCopied(1, f"{tmp_path / 'savepoint'} is not empty, it has mine: give the savepoint its own folder")
    job.save(2)
    assert CheckpointStore(f"{tmp_path}/saved/f").completed() == [2]


def test_savepoint_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(FlowError, match="job `f` can't begin from nowhere"):
        Stored(tmp_path, savepoint=Savepoint("nowhere")).storage.restore_point()


def test_start_of_a_job_is_remembered_and_only_a_warning_where_it_can_not_be(tmp_path, monkeypatch, caplog):
    job = Stored(tmp_path)
    assert job.perform(RememberStart(7.0)) is None
    assert job.memory.record.running_since == 7.0

    def forgetful(record):
        raise OSError("the memory does not answer")

    monkeypatch.setattr(job.memory, "keep", forgetful)
    assert job.perform(RememberStart(8.0)) is None
    assert "when it began to run could not be recorded: the memory does not answer" in caplog.text


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param(lambda job: Save(job.manifest(2)), id="save"),
        pytest.param(lambda job: Commit(1, {}), id="commit"),
        pytest.param(lambda job: RestoreSinks(1, job.manifest(1)), id="restore"),
        pytest.param(lambda job: RestoreSinks(1, job.manifest(1), retracts=2), id="take back"),
    ],
)
def test_a_replaced_coordinator_changes_nothing_in_the_run(tmp_path, effect):
    job = Stored(tmp_path)
    job.save(1)
    job.another()
    with pytest.raises(SupersededError, match="of term 0, was considered lost, and another has begun"):
        job.perform(effect(job))
    assert job.calls == []
    assert job.storage._saved.last == 1


class RecordingStorage:
    """Storage that records the order of its effects; the first waits until it may continue."""

    def __init__(self):
        self.begun, self.may_go_on = SimpleQueue(), SimpleQueue()

    def perform(self, effect, later):
        self.begun.put(effect)
        self.may_go_on.get(timeout=PATIENCE)
        return Committed(effect.checkpoint) if isinstance(effect, Commit) else None


def test_the_storage_thread_carries_out_effects_in_turn_and_answers_when_each_is_done():
    storage, answers = RecordingStorage(), SimpleQueue()
    thread = StorageThread("f", storage, answers.put)
    effects = [Commit(1, {}), Discard(2), Commit(3, {})]
    for effect in effects:
        thread.put(effect)
    assert storage.begun.get(timeout=PATIENCE) == effects[0]
    assert storage.begun.empty()
    assert answers.empty()
    for _ in effects:
        storage.may_go_on.put(None)
    assert thread.close(PATIENCE)
    assert [storage.begun.get_nowait() for _ in effects[1:]] == effects[1:]
    assert [answers.get_nowait(), answers.get_nowait()] == [Committed(1), Committed(3)]


def test_the_storage_thread_reports_if_all_effects_were_carried_out_in_time():
    storage = RecordingStorage()
    thread = StorageThread("f", storage, lambda answer: None)
    thread.put(Commit(1, {}))
    storage.begun.get(timeout=PATIENCE)
    assert not thread.close(0.0)
    storage.may_go_on.put(None)
    assert thread.close(PATIENCE)


class Ending:
    """Storage whose thread would end, as by a sink's `sys.exit`."""

    def perform(self, effect, later):
        raise SystemExit(3)


def test_an_unexpected_error_of_storage_is_answered_so_that_the_job_does_not_wait():
    answers = SimpleQueue()
    thread = StorageThread("f", Ending(), answers.put)
    thread.put(Commit(1, {}))
    assert str(answers.get(timeout=PATIENCE).error) == "job `f`: Commit failed: SystemExit: 3"
    thread.put(Discard(2))
    assert "Discard failed" in str(answers.get(timeout=PATIENCE).error), "it goes on"
    assert thread.close(PATIENCE)
