"""Jobs in this process with a slow sink: the job continues during commits, and finishes after its last commit."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue

import pytest
from patience import patience

import evenflow as ef
from evenflow.connectors.python.list_sink import ListSink
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import CheckpointState, MigrationState

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

PATIENCE = patience(30)


def number(state, row):
    n = (state or 0) + 1
    return n, {"key": row["key"], "n": n}


class SlowSink(ListSink):
    """A sink with slow commits. `begun`: begun commits; each waits for an item of `may_commit`, which may be an error."""

    def __init__(self, rows):
        super().__init__(rows, "out")
        self.begun, self.may_commit = SimpleQueue(), SimpleQueue()

    def commit(self, checkpoint, committables):
        self.begun.put(checkpoint)
        error = self.may_commit.get(timeout=PATIENCE)
        if error is not None:
            raise error
        return super().commit(checkpoint, committables)


class Job:
    """A job that numbers the rows of each key of an endless source; the commit of a checkpoint has begun."""

    def __init__(self, folder):
        self.rows = []
        self.sink = SlowSink(self.rows)
        flow = ef.Dataflow("f")
        rows = flow.read(ef.generate(rate=2_000, keys=20, rows_per_batch=20)).key_by("key")
        rows.stateful_map(number).named("count").write(self.sink)
        checkpoint = ef.CheckpointConfig(str(folder), interval=None)
        config = ef.JobConfig(parallelism=2, key_groups=8, checkpoint=checkpoint, restart=ef.RestartConfig(delay=0))
        self.job = flow.run(runtime="local", config=config)
        self.rows_go_on()
        self.job.checkpoint(timeout=None)
        self.committing = self.begun()

    def rows_go_on(self):
        """Wait until more rows reach the workers that number them."""
        deadline, before = time.monotonic() + PATIENCE, self._numbered()
        while self._numbered() <= before:
            assert time.monotonic() < deadline, f"no row came within {PATIENCE} s"
            time.sleep(0.005)

    def _numbered(self):
        return sum(figures.rows_in for figures in self.job.metrics() if figures.worker.startswith("count"))

    def begun(self):
        """Return the checkpoint whose commit begins."""
        return self.sink.begun.get(timeout=PATIENCE)

    def commit(self, error=None):
        self.sink.may_commit.put(error)

    def end(self):
        """Stop the job and wait until everything is committed."""
        self.job.stop(drain=True)
        self.begun()
        self.commit()
        assert self.job.wait(PATIENCE).status().state is JobState.FINISHED

    def is_whole(self):
        """Return True if every key's rows are numbered from 1 on, each number once."""
        numbers = [(row["key"], row["n"]) for row in self.rows]
        last = {key: max(n for each, n in numbers if each == key) for key, _ in numbers}
        return len(last) > 1 and sorted(numbers) == sorted((key, n) for key, most in last.items() for n in range(1, most + 1))


@pytest.fixture
def slow(tmp_path):
    slow = Job(tmp_path)
    yield slow
    slow.job.cancel()
    for _ in range(10):
        slow.commit()
    slow.job.wait(PATIENCE)


def test_a_job_answers_moves_keys_and_scales_while_a_sink_commits(slow):
    job = slow.job
    assert (job.status().state, job.status().completed_checkpoints) == (JobState.RUNNING, 1)
    assert job.checkpoints()[-1].state is CheckpointState.COMMITTING
    assert job.migrate("count", groups=[0, 1, 2], to=1, timeout=PATIENCE).state is MigrationState.DONE
    assert job.scale("count", 3, timeout=PATIENCE).after == 3
    slow.rows_go_on()
    with pytest.raises(Empty):
        slow.sink.begun.get_nowait()
    assert slow.rows == []
    slow.commit()
    slow.end()
    assert slow.is_whole()


def test_a_job_has_finished_once_its_last_commit_is_carried_out(slow):
    slow.job.stop(drain=True)
    slow.commit()
    assert slow.begun() == slow.committing + 1
    assert slow.job.status().state is JobState.STOPPING
    slow.commit()
    assert slow.job.wait(PATIENCE).status().state is JobState.FINISHED
    assert slow.is_whole()


def test_a_checkpoint_that_is_asked_for_meanwhile_follows(slow):
    assert slow.job.checkpoint(timeout=None).state is CheckpointState.PENDING
    assert slow.job.checkpoints()[-1].number == slow.committing
    slow.commit()
    assert slow.begun() == slow.committing + 1
    slow.commit()
    slow.end()
    assert slow.is_whole()


def test_a_sink_that_fails_after_long_takes_the_job_back_which_has_moved_keys_meanwhile(slow):
    slow.job.migrate("count", groups=[0, 1, 2], to=1, timeout=PATIENCE)
    slow.commit(OSError("the table is locked"))
    assert slow.begun() == slow.committing, "it is committed again, before the next attempt begins"
    slow.commit()
    slow.end()
    assert slow.is_whole()
    assert slow.job.status().attempt == 1


def test_a_job_that_is_cancelled_while_a_sink_commits_ends_when_the_sink_is_done(slow):
    slow.job.cancel()
    assert slow.job.status().state is JobState.CANCELLED
    slow.commit()
    assert slow.job.wait(PATIENCE).status().state is JobState.CANCELLED


def test_a_sink_that_calls_sys_exit_in_its_commit_fails_the_job_and_is_named():
    class Exiting(ListSink):
        def commit(self, checkpoint, committables):
            raise SystemExit(3)

    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1, 2])).write(Exiting([], "out"))
    with pytest.raises(ef.JobFailedError, match="sink `out` could not commit checkpoint 1: SystemExit: 3"):
        flow.run(runtime="local").wait(PATIENCE)
