"""A job gathers the facts about its standstill from windows, checkpoints, commits and changes, and its status says the cause."""

from __future__ import annotations

import pytest
from job_script import LOST, WORKERS, ScriptedJob, counting, saving_job

import evenflow as ef
from evenflow.engine.protocol.state_channels import state_channel
from evenflow.engine.source import SplitFigures
from evenflow.scheduler.load.long_call import LongCall
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.requests import MoveKeys, ShowStatus, TakeCheckpoint

CALL = LongCall(7.0, "aggregate", ("slow (job.py:3)",))


def running(**config):
    return ScriptedJob(*counting(**config)).start(now=0.0)


def windows(job, until, workers=WORKERS, **figures):
    """Report a window without rows of each worker that ends at `until`."""
    for worker in workers:
        job.report(worker, WorkerWindow(worker, until - 1.0, 1.0, **figures), until)


def causes(job, now):
    return [(wait.kind.value, wait.operator, wait.worker) for wait in job.ask(ShowStatus(), now).waits_for]


def test_job_that_has_nothing_to_read_says_so_and_nothing_else():
    job = running()
    windows(job, 12.0)
    assert causes(job, 12.5) == [("input", "from_items", "")]


def test_job_with_rows_waits_for_nothing():
    job = running()
    windows(job, 12.0, rows_in=1)
    assert causes(job, 16.0) == []


def test_job_with_rows_in_long_windows_waits_for_nothing_between_two_reports():
    job = running(metrics={"window": "1m"}, checkpoint={"interval": "10s"})
    for worker in WORKERS:
        job.report(worker, WorkerWindow(worker, 0.0, 60.0, rows_in=1), 60.0)
    job.tick(70.0)
    assert causes(job, 100.0) == []
    assert causes(job, 126.0)[0][0] == "checkpoint"


def test_worker_in_a_long_call_is_the_cause():
    job = running()
    windows(job, 12.0, WORKERS[:3])
    job.core.note_long_calls({"aggregate-1": CALL})
    assert causes(job, 12.5)[0] == ("function", "aggregate", "aggregate-1")
    status = job.ask(ShowStatus())
    assert "operator `aggregate` (worker aggregate-1): slow (job.py:3) has not returned for 7 s\n    slow (job.py:3)" in str(status)


def test_call_of_a_worker_that_is_no_longer_there_is_no_cause():
    job = running()
    job.core.note_long_calls({"aggregate-7": CALL})
    windows(job, 12.0, rows_in=1)
    assert causes(job, 12.0) == []


def test_blocked_channels_name_the_worker_whose_credit_is_missing():
    job = running()
    (channel,) = [c.id for c in job.core.plan.channels if (c.sender, c.receiver) == ("from_items-0", "aggregate-1")]
    windows(job, 12.0, ("from_items-1", "aggregate-0", "aggregate-1"))
    windows(job, 12.0, ("from_items-0",), blocked=(channel,))
    assert causes(job, 12.5)[0] == ("credit", "aggregate", "aggregate-1")


def test_blocked_channel_for_state_names_the_worker_that_does_not_take_it():
    job = running()
    numbers = {task.name: task.number for task in job.core.plan.tasks}
    windows(job, 12.0, ("from_items-0", "from_items-1", "aggregate-1"))
    windows(job, 12.0, ("aggregate-0",), blocked=(state_channel(numbers["aggregate-0"], numbers["aggregate-1"]),))
    assert causes(job, 12.5)[0] == ("credit", "aggregate", "aggregate-1")


def test_checkpoint_that_some_workers_have_not_passed_is_the_cause():
    job = running(checkpoint={"interval": "10s"})
    job.tick(10.0)
    job.prepare(1, workers=WORKERS[:3])
    windows(job, 18.0)
    assert causes(job, 18.0)[0] == ("checkpoint", "aggregate", "aggregate-1")


def test_manifest_that_is_not_written_is_the_cause():
    job = saving_job()
    job.ask(TakeCheckpoint(), 10.0)
    job.tick(10.0)
    job.prepare(1)
    windows(job, 18.0)
    (wait, *_) = job.ask(ShowStatus(), 18.0).waits_for
    assert wait.text == "checkpoint 1 has waited 8 s for its manifest to be written"


def test_commit_that_does_not_end_is_the_cause_also_when_all_workers_have_finished():
    job = running()
    job.finish(10.0)
    (wait,) = job.ask(ShowStatus(), 18.0).waits_for
    assert wait.text == "the commit of checkpoint 1 to `to_list` has not ended for 8 s"
    job.committed(1, now=19.0)
    assert job.ask(ShowStatus()).waits_for == ()


def test_move_that_pauses_the_stream_is_the_cause():
    job = running()
    owner = int(job.core.migrations.tables["aggregate"].groups[0])
    job.ask(MoveKeys("aggregate", (0,), (), 1 - owner, "pause"), 10.0)
    job.tick(10.0)
    job.core.migrations.current.in_step = True
    windows(job, 18.0)
    assert causes(job, 18.0) == [("move", "aggregate", "")]


def test_split_that_holds_event_time_back_is_named_with_its_worker():
    flow = ef.Dataflow("f")
    clicks = flow.read(ef.from_generator(lambda partition, position: iter(()), partitions=2, event_time="ts", name="clicks"))
    clicks.key_by("k").window(ef.tumbling("1m")).aggregate(n=ef.count()).named("counts").write(ef.to_list([], name="out"))
    config = ef.JobConfig(parallelism=1, checkpoint=ef.CheckpointConfig(interval=None))
    job = ScriptedJob(flow.plan(config=config), config).start(now=0.0)
    for second in range(1, 15):
        splits = SplitFigures("0", newest=second * 1_000_000), SplitFigures("1")
        job.report("clicks-0", WorkerWindow("clicks-0", second - 1.0, 1.0, rows_in=1, splits=splits), float(second))
        job.tick(float(second))
    (wait,) = job.ask(ShowStatus()).waits_for
    assert (wait.kind.value, wait.operator, wait.worker, wait.split) == ("watermark", "clicks", "clicks-0", "1")
    status = job.ask(ShowStatus())
    assert (status.problems, status.other_waits) == ((wait.text,), ()), "it is shown once"


@pytest.mark.parametrize("state", ["starting", "restarting", "cancelled"])
def test_job_that_does_not_run_waits_for_nothing(state):
    if state == "starting":
        job = ScriptedJob(*counting())
        job.begin(0.0)
    else:
        job = saving_job()
        _ = job.cancel(1.0) if state == "cancelled" else job.failed(LOST, 1.0)
    job.core.note_long_calls({"aggregate-1": CALL})
    status = job.ask(ShowStatus(), 20.0)
    assert (status.state.value, status.waits_for) == (state, ())


def test_standstill_counts_from_the_newest_start_of_the_workers():
    job = saving_job()
    job.failed(LOST, 20.0)
    job.restart(40.0)
    windows(job, 42.0)
    assert causes(job, 43.0) == []
    windows(job, 47.0)
    assert causes(job, 47.0) == [("input", "from_items", "")]
