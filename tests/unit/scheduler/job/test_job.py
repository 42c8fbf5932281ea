"""The job's lifecycle: its effects after each event."""

from __future__ import annotations

import pytest
from job_script import WORKERS, ScriptedJob, commits, counting, recipients

from evenflow.engine.errors import JobError
from evenflow.engine.protocol.effects import Finished, OperatorProblem, Prepared
from evenflow.scheduler.protocol.effects import Commit, Deploy, Ended, JobState, RememberStart, RestoreSinks
from evenflow.scheduler.protocol.messages import BeginCheckpoint, Shutdown, StopSource
from evenflow.scheduler.protocol.requests import Fail, ShowProgress, ShowStatus
from evenflow.scheduler.protocol.storage_answers import Committed, SinksRestored
from evenflow.scheduler.record.job_record import PROBLEMS


def new_job(interval=None):
    return ScriptedJob(*counting(checkpoint={"interval": interval}))


def running_job(interval=None):
    return new_job(interval).start()


def deployed_job():
    job = new_job()
    job.begin()
    job.sinks_restored()
    return job


def finished(*items):
    return Finished({"to_list": list(items)} if items else {})


def prepared(checkpoint, *items):
    return Prepared(checkpoint, {"to_list": list(items)} if items else {})


def test_problems_of_operators_are_kept_once_each_and_only_the_newest():
    job = running_job()
    for number in (*range(PROBLEMS + 2), 3):
        for worker in WORKERS[:2]:
            job.report(worker, OperatorProblem("look", f"no table {number}"))
    shown = job.ask(ShowStatus()).problems
    assert len(shown) == PROBLEMS
    assert shown[-2:] == (f"operator `look`: no table {PROBLEMS + 1}", "operator `look`: no table 3")
    assert job.core.state is JobState.RUNNING


def test_job_begins_with_its_sinks_then_deploys_its_workers():
    job = new_job()
    assert job.begin() == [RestoreSinks(0, None, None)]
    assert job.sinks_restored() == [Deploy(0, job.core.plan, None)]


def test_job_runs_once_all_workers_have_started():
    job = deployed_job()
    for worker in WORKERS[:-1]:
        assert job.ready(worker) == []
        assert (job.core.state, job.core.deploying) == (JobState.STARTING, True)
    assert job.ready(WORKERS[-1], 3.0) == [RememberStart(3.0)]
    assert (job.core.state, job.core.deploying) == (JobState.RUNNING, False)


def test_first_deployment_that_fails_ends_the_job():
    job = deployed_job()
    job.core.not_deployed(0, JobError("no room"), 1.0)
    assert job.core.effects()[-1] == Ended(JobState.FAILED)
    assert str(job.core.error) == "no room"


def test_error_of_a_first_worker_ends_a_job_that_still_deploys_and_later_ones_change_nothing():
    job = deployed_job()
    job.ready("from_items-0")
    assert job.failed(JobError("refused"))[-1] == Ended(JobState.FAILED)
    job.core.not_deployed(0, JobError("no room"), 1.0)
    assert job.core.effects() == []
    assert str(job.core.error) == "refused"


def test_deployment_of_an_attempt_that_is_over_may_fail():
    job = running_job()
    job.core.not_deployed(job.core.attempt + 1, JobError("no room"), 1.0)
    assert (job.core.effects(), job.core.state) == ([], JobState.RUNNING)


def test_job_whose_sinks_can_not_be_brought_to_where_it_begins_ends():
    job = new_job()
    job.begin()
    assert job.sinks_restored(error=JobError("the folder is gone"))[-1] == Ended(JobState.FAILED)


def test_job_has_finished_when_all_workers_have_and_what_they_wrote_is_committed_once():
    job = running_job()
    for worker in WORKERS[:-1]:
        assert job.report(worker, finished(f"rows of {worker}"), 1.0) == []
    rows = {"to_list": [*(f"rows of {worker}" for worker in WORKERS[:-1]), "last rows"]}
    assert job.report(WORKERS[-1], finished("last rows")) == [Commit(1, rows, 0, last=True)]
    assert job.core.state is JobState.RUNNING, "output is committed before any worker is told to leave"
    effects = job.committed(1)
    assert recipients(effects, Shutdown()) == sorted(WORKERS)
    assert effects[-1] == Ended(JobState.FINISHED)


def test_job_whose_last_commit_fails_has_failed():
    job = running_job()
    for worker in WORKERS:
        job.report(worker, finished("rows"), 1.0)
    assert job.committed(1, JobError("the table is gone"))[-1] == Ended(JobState.FAILED)
    assert str(job.core.error) == "the table is gone"


def test_checkpoint_begins_at_the_sources_when_it_is_due():
    job = running_job(interval=10.0)
    assert job.tick(9.9) == []
    assert recipients(job.tick(10.0), BeginCheckpoint(1)) == ["from_items-0", "from_items-1"]


def test_only_one_checkpoint_is_under_way():
    job = running_job(interval=10.0)
    job.tick(10.0)
    assert job.tick(30.0) == []


def test_checkpoint_is_committed_when_the_last_worker_has_prepared_it():
    job = running_job(interval=10.0)
    job.tick(10.0)
    for worker in WORKERS[:-1]:
        assert job.report(worker, prepared(1), 11.0) == []
    assert commits(job.report(WORKERS[-1], prepared(1, "rows"), 12.0)) == [(1, {"to_list": ["rows"]})]
    assert job.core.checkpoints.completed == 1
    assert job.committed(1) == []
    assert job.tick(21.9) == []
    assert recipients(job.tick(22.0), BeginCheckpoint(2)) == ["from_items-0", "from_items-1"]


def test_worker_that_has_finished_need_not_prepare():
    job = running_job(interval=10.0)
    job.report("from_items-0", finished(), 1.0)
    assert recipients(job.tick(10.0), BeginCheckpoint(1)) == ["from_items-1"]
    job.report("from_items-1", prepared(1), 11.0)
    job.report("aggregate-0", prepared(1), 11.0)
    assert commits(job.report("aggregate-1", finished("rows"), 11.0)) == [(1, {"to_list": ["rows"]})]


def test_rows_written_behind_a_checkpoint_are_not_committed_with_it():
    job = running_job(interval=10.0)
    job.tick(10.0)
    job.report("aggregate-0", prepared(1, "before"), 11.0)
    job.report("aggregate-0", finished("behind"), 11.0)
    for worker in WORKERS[:2]:
        job.report(worker, prepared(1), 12.0)
    assert commits(job.report("aggregate-1", prepared(1), 12.0)) == [(1, {"to_list": ["before"]})]
    job.committed(1)
    for worker in WORKERS[:2]:
        job.report(worker, finished(), 13.0)
    assert commits(job.report("aggregate-1", finished(), 13.0)) == [(2, {"to_list": ["behind"]})]


def test_job_that_ends_with_a_checkpoint_under_way_commits_everything_at_the_end():
    job = running_job(interval=10.0)
    job.tick(10.0)
    job.report("aggregate-0", prepared(1, "before"), 11.0)
    job.report("aggregate-0", finished("behind"), 11.0)
    for worker in WORKERS[:2]:
        job.report(worker, finished(), 12.0)
    assert commits(job.report("aggregate-1", finished(), 12.0)) == [(2, {"to_list": ["before", "behind"]})]


def test_no_checkpoint_begins_without_a_source_that_runs():
    job = running_job(interval=10.0)
    for worker in WORKERS[:2]:
        job.report(worker, finished(), 1.0)
    assert job.tick(10.0) == []


def test_no_interval_means_no_checkpoints():
    assert running_job().tick(1e9) == []


def test_stop_ends_the_sources_that_still_read():
    job = running_job()
    job.report("from_items-0", finished(), 1.0)
    effects = job.stop()
    assert (recipients(effects, StopSource()), len(effects)) == (["from_items-1"], 1)
    assert job.core.state is JobState.STOPPING
    assert job.stop() == []


def test_stop_that_comes_before_all_have_started_is_kept_until_they_have():
    job = new_job()
    job.begin()
    assert job.stop() == []
    job.sinks_restored()
    for worker in WORKERS[:-1]:
        assert job.ready(worker) == []
    assert recipients(job.ready(WORKERS[-1]), StopSource()) == ["from_items-0", "from_items-1"]
    assert job.core.state is JobState.STOPPING


def test_job_that_stops_begins_no_checkpoint_and_finishes():
    job = running_job(interval=10.0)
    job.stop()
    assert job.tick(99.0) == []
    for worker in WORKERS:
        job.report(worker, finished(), 100.0)
    assert job.committed(1)[-1] == Ended(JobState.FINISHED)


def test_checkpoint_under_way_completes_while_the_job_stops():
    job = running_job(interval=10.0)
    job.tick(10.0)
    job.stop()
    effects = [effect for worker in WORKERS for effect in job.report(worker, prepared(1), 11.0)]
    assert commits(effects) == [(1, {})]


@pytest.mark.parametrize("make_job", [new_job, deployed_job, running_job])
def test_cancel_ends_the_job_at_once_without_a_commit(make_job):
    effects = make_job().cancel()
    assert recipients(effects, Shutdown()) == sorted(WORKERS)
    assert commits(effects) == []
    assert effects[-1] == Ended(JobState.CANCELLED)


def test_first_failure_stands():
    job = running_job()
    assert job.failed(JobError("first"))[-1] == Ended(JobState.FAILED)
    assert job.failed(JobError("second")) == []
    assert str(job.core.error) == "first"


def test_an_error_outside_of_the_workers_ends_the_job():
    job, error = running_job(), JobError("the query is gone")
    assert job.request(Fail(error))[-1] == Ended(JobState.FAILED)
    assert job.core.error is error


def test_lost_worker_fails_the_job_by_name():
    job = running_job()
    assert job.lost("aggregate-0", "its process died")[-1] == Ended(JobState.FAILED)
    assert str(job.core.error) == "job `f`: worker aggregate-0, which runs aggregate, to_list, is gone: its process died"


@pytest.mark.parametrize("end", [lambda job: job.cancel(), lambda job: job.failed(JobError("no"))], ids=["cancelled", "failed"])
def test_nothing_changes_a_job_that_has_ended(end):
    job = running_job(interval=10.0)
    job.tick(10.0)
    end(job)
    state, error = job.core.state, job.core.error
    for worker in WORKERS:
        assert job.report(worker, prepared(1, "rows"), 11.0) == []
        assert job.report(worker, finished("rows")) == []
        assert job.ready(worker) == job.lost(worker) == []
    assert job.stop() == job.cancel() == job.tick(99.0) == job.failed(JobError("late")) == job.request(Fail(JobError("later"))) == []
    assert job.saved(1) == job.committed(1) == job.sinks_restored() == job.older_found(1, "it is gone") == []
    job.core.not_deployed(0, JobError("late"), 99.0)
    job.core.not_spawned(("aggregate-2",), 0, "late", 99.0)
    job.core.not_reserved("late", 99.0)
    assert (job.core.effects(), job.core.state, job.core.error) == ([], state, error)


def test_seconds_are_counted_from_when_the_job_runs_to_its_end():
    job = deployed_job()
    assert job.ask(ShowStatus(), 2.0).running_seconds == 0.0
    job.run(3.0)
    assert job.ask(ShowStatus(), 5.0).running_seconds == 2.0
    job.cancel(6.0)
    assert job.ask(ShowStatus(), 9.0).running_seconds == 3.0


def test_job_that_never_ran_has_run_for_no_time():
    job = deployed_job()
    job.cancel(2.0)
    job.ready(WORKERS[0], 3.0)
    assert job.ask(ShowStatus(), 4.0).running_seconds == 0.0


def test_deliveries_of_sinks_are_shown_until_the_driver_has_them():
    job = new_job(interval=10.0)
    job.begin()
    job.stored(SinksRestored(0, (("to_list", "early"),)))
    job.run()
    job.tick(10.0)
    for worker in WORKERS:
        job.report(worker, prepared(1))
    job.stored(Committed(1, (("to_list", "rows"),)))
    shown = job.ask(ShowProgress(0))
    assert (shown.state, shown.error, shown.deliveries) == (JobState.RUNNING, None, (("to_list", "early"), ("to_list", "rows")))
    assert job.ask(ShowProgress(1)).deliveries == (("to_list", "rows"),)
    assert job.ask(ShowProgress(2)).deliveries == ()


def test_effects_name_the_event_that_led_to_them():
    job = new_job(interval=10.0)
    causes = [effect.cause for effect in job.begin()]
    causes += [effect.cause for effect in job.sinks_restored()]
    causes += [effect.cause for worker in WORKERS for effect in job.ready(worker)]
    causes += sorted({effect.cause for effect in job.tick(10.0)})
    causes += [effect.cause for worker in WORKERS for effect in job.report(worker, prepared(1))]
    causes += sorted({effect.cause for effect in job.cancel()})
    aggregate = WORKERS[-1]
    assert causes == ["begin", "SinksRestored", f"{aggregate} is ready", "time has passed", f"{aggregate}: Prepared", "Cancel"]


def test_effects_that_differ_in_their_cause_alone_are_equal():
    job = deployed_job()
    by_cancel, by_accident = deployed_job().cancel(), job.lost(WORKERS[0])
    assert by_cancel[:-1] == by_accident[:-1]
    assert {effect.cause for effect in by_cancel} != {effect.cause for effect in by_accident}


def test_the_story_has_the_last_events_with_their_times_but_no_ticks():
    job = deployed_job()
    job.run(1.0)
    job.tick(1.5)
    job.lost("aggregate-0", "its process died", now=2.0)
    assert job.core.record.story.splitlines()[-2:] == ["1.000 aggregate-1 is ready", "2.000 aggregate-0 is lost: its process died"]


def test_a_long_story_keeps_its_newest_events():
    job = running_job(interval=1.0)
    for number in range(1, 40):
        job.tick(2.0 * number)
        for worker in WORKERS:
            job.report(worker, prepared(number))
        job.committed(number)
    story = job.core.record.story.splitlines()
    assert len(story) == 40
    assert story[-5:] == [*(f"78.000 {worker}: Prepared" for worker in WORKERS), "78.000 Committed"]


@pytest.mark.parametrize(
    ("state", "final"),
    [
        ("starting", False), ("running", False), ("restarting", False), ("stopping", False),
        ("finished", True), ("failed", True), ("cancelled", True),
    ],
)  # fmt: skip
def test_states_say_whether_they_are_final(state, final):
    assert JobState(state).final is final
