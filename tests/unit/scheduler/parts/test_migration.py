"""A migration goes step by step, never while a checkpoint is under way, and ends with the stream at the latest."""

from __future__ import annotations

from collections import deque
from random import Random

import numpy as np
import pytest
from job_script import WORKERS, ScriptedJob, counting, kinds, recipients, saving_job

from evenflow.engine.errors import JobError, RequestError
from evenflow.engine.protocol.effects import Finished, Prepared
from evenflow.engine.protocol.handover_step import Arrived
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.scheduler.configs.job import LIVE
from evenflow.scheduler.protocol.effects import Commit, JobState, Tell
from evenflow.scheduler.protocol.messages import Announce, Announced, BeginCheckpoint, Resume, Shutdown, StopSource, Switch
from evenflow.scheduler.protocol.reports import MigrationState

FEEDERS, MEMBERS = WORKERS[:2], WORKERS[2:]


def running_job(interval=None):
    return ScriptedJob(*counting(checkpoint={"interval": interval})).start()


def migrate(job, groups=(1, 0, 1, 1), strategy="sudden", now=1.0):
    """Begin a migration; by default group 0 goes from worker 0 to worker 1, and the others stay. Return it and its commands."""
    job.now = now
    job.core.record.happens("a migration is asked for", now)
    target = RoutingTable(np.array(groups, np.uint16))
    migration = job.core.reconfiguration.move(job.core.plan.stage_of("aggregate"), strategy, target, "by hand")
    return migration, job.core.effects()


def report(job, reports, now=2.0):
    return [effect for worker, message in reports for effect in job.report(worker, message, now)]


def all_announced(job, number=0):
    return report(job, [(worker, Announced(number)) for worker in WORKERS])


def all_prepared(job, checkpoint, now):
    return report(job, [(worker, Prepared(checkpoint, {})) for worker in WORKERS], now)


def step_made(job, version, now=3.0, moves=((0, 1),)):
    return report(job, [(f"aggregate-{target}", Arrived(version, source, 2, 100)) for source, target in moves], now)


def test_steps_are_announced_to_those_who_feed_the_operator_and_to_its_workers():
    migration, effects = migrate(running_job())
    assert recipients(effects, Announce) == sorted(WORKERS)
    assert migration.state is MigrationState.RUNNING


def test_step_begins_when_all_have_confirmed_it():
    job = running_job()
    migrate(job)
    assert report(job, [(worker, Announced(0)) for worker in WORKERS[:-1]]) == []
    assert recipients(report(job, [(WORKERS[-1], Announced(0))]), Switch) == list(FEEDERS)
    assert job.core.migrations.in_step


def test_step_is_over_when_all_state_has_arrived():
    job = running_job()
    migration, _ = migrate(job, groups=(1, 0, 0, 1))
    all_announced(job)
    report(job, [("aggregate-1", Arrived(1, 0, 2, 100))])
    assert job.core.migrations.in_step
    report(job, [("aggregate-0", Arrived(1, 1, 3, 150))], now=3.5)
    assert migration.state is MigrationState.DONE
    assert job.core.migrations.tables["aggregate"].groups.tolist() == [1, 0, 0, 1]
    found = migration.report()
    assert (found.steps_done, found.groups, found.keys_moved, found.state_bytes, found.seconds) == (1, 2, 5, 250, 2.5)


def test_steps_are_made_one_after_the_other():
    job = running_job()
    migration, _ = migrate(job, groups=(1, 1, 1, 1), strategy="fluid")
    assert recipients(all_announced(job), Switch) == list(FEEDERS)
    second = step_made(job, 1)
    assert [effect.command for effect in second] == [Switch(2), Switch(2)]
    assert job.core.migrations.tables["aggregate"].groups.tolist() == [1, 0, 1, 1]
    assert step_made(job, 2) == []
    assert migration.state is MigrationState.DONE


def test_feeders_that_paused_resume_when_the_step_is_over():
    job = running_job()
    migrate(job, strategy="pause")
    assert recipients(all_announced(job), Resume) == []
    assert recipients(step_made(job, 1), Resume) == list(FEEDERS)


def test_nothing_to_move_is_done_at_once():
    job = running_job()
    migration, _ = migrate(job, groups=(0, 0, 1, 1))
    all_announced(job)
    assert migration.state is MigrationState.DONE
    assert migration.report().steps == 0


def test_second_migration_is_refused_while_one_is_under_way():
    job = running_job()
    migrate(job)
    with pytest.raises(JobError, match=r"job `f`: migration 0 of `aggregate` is under way \(0 of 1 steps\); wait until it is done"):
        migrate(job)
    all_announced(job)
    step_made(job, 1)
    second, _ = migrate(job, groups=(0, 0, 1, 1))
    assert (second.number, second.steps[0].version) == (1, 2)


def test_job_that_does_not_run_moves_nothing():
    job = running_job()
    job.stop()
    with pytest.raises(JobError, match="job `f` is stopping: keys can only move while it runs"):
        migrate(job)


def test_restart_is_refused_without_a_place_for_its_checkpoint():
    with pytest.raises(RequestError, match=r"the strategy restart goes through a checkpoint: .* CheckpointConfig\(dir="):
        migrate(running_job(), strategy="restart")


def test_checkpoint_that_is_due_waits_for_the_step_under_way_and_goes_before_the_next():
    job = running_job(interval=10.0)
    migrate(job, groups=(1, 1, 1, 1), strategy="fluid")
    all_announced(job)
    assert job.tick(10.0) == []
    effects = step_made(job, 1, now=11.0)
    assert recipients(effects, BeginCheckpoint) == list(FEEDERS)
    assert recipients(effects, Switch) == []
    effects = all_prepared(job, 1, 12.0)
    assert kinds(effects) == [Commit, Tell, Tell]
    assert recipients(effects, Switch) == list(FEEDERS), "a commit may take long: nothing waits for it"


def test_step_waits_until_the_checkpoint_is_complete():
    job = running_job(interval=10.0)
    job.tick(10.0)
    migrate(job, now=11.0)
    assert all_announced(job) == []
    assert not job.core.migrations.in_step
    effects = all_prepared(job, 1, 12.0)
    assert kinds(effects) == [Commit, Tell, Tell]
    assert recipients(effects, Switch) == list(FEEDERS)


def test_step_waits_until_the_manifest_of_the_checkpoint_is_written():
    job = saving_job()
    job.tick(10.0)
    migrate(job, now=11.0)
    assert all_announced(job) == []
    assert recipients(job.prepare(1, 12.0), Switch) == []
    assert recipients(job.saved(1), Switch) == list(FEEDERS)


def test_step_that_is_under_way_is_made_while_a_commit_takes_long():
    job = running_job(interval=10.0)
    job.tick(10.0)
    migration, _ = migrate(job, groups=(1, 1, 1, 1), strategy="fluid", now=11.0)
    all_announced(job)
    all_prepared(job, 1, 12.0)
    assert recipients(step_made(job, 1, 13.0), Switch) == list(FEEDERS)
    step_made(job, 2, 14.0)
    assert migration.state is MigrationState.DONE
    assert job.tick(99.0) == [], "no checkpoint begins before the commit is carried out"
    job.committed(1)
    assert recipients(job.tick(99.0), BeginCheckpoint) == list(FEEDERS)


def test_commit_that_fails_ends_the_migration_that_has_gone_on_meanwhile():
    job = saving_job()
    job.tick(10.0)
    migration, _ = migrate(job, groups=(1, 1, 1, 1), strategy="fluid", now=11.0)
    all_announced(job)
    job.prepare(1, 12.0)
    job.saved(1)
    step_made(job, 1, 13.0)
    job.committed(1, JobError("the table is locked"))
    assert (migration.state, migration.problem) == (MigrationState.ENDED_EARLY, "the job was restored from its last checkpoint")
    assert job.restart(14.0)[1].plan.tables["aggregate"].groups.tolist() == [0, 0, 1, 1]


def test_stop_during_a_step_waits_until_it_is_over_and_no_other_begins():
    job = running_job()
    migration, _ = migrate(job, groups=(1, 1, 1, 1), strategy="fluid")
    all_announced(job)
    assert job.stop() == []
    assert job.core.state is JobState.RUNNING
    effects = step_made(job, 1)
    assert recipients(effects, StopSource) == list(FEEDERS)
    assert recipients(effects, Switch) == []
    assert migration.state is MigrationState.ENDED_EARLY
    assert job.core.state is JobState.STOPPING


def test_migration_ends_early_when_the_sources_have_ended():
    job = running_job()
    migration, _ = migrate(job, groups=(1, 1, 1, 1), strategy="fluid")
    all_announced(job)
    report(job, [("from_items-0", Finished({})), ("from_items-1", Finished({}))])
    assert job.core.migrations.in_step, "a source may have switched before: the step goes on to its end"
    job.report("aggregate-1", Arrived(1, 0, 2, 100), 4.0)
    assert migration.state is MigrationState.ENDED_EARLY
    assert migration.report().steps_done == 1


def test_step_that_no_source_began_ends_with_them():
    job = running_job()
    migration, _ = migrate(job)
    all_announced(job)
    report(job, [(worker, Finished({})) for worker in FEEDERS])
    assert migration.state is MigrationState.RUNNING
    job.report("aggregate-1", Finished({}), 4.0)
    assert migration.state is MigrationState.ENDED_EARLY, "the worker that would have taken state has finished without it"
    assert job.core.migrations.tables["aggregate"].groups.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("end", [lambda job: job.cancel(), lambda job: job.failed(JobError("no"))], ids=["cancelled", "failed"])
def test_migration_ends_with_its_job(end):
    job = running_job()
    migration, _ = migrate(job, now=1.0)
    all_announced(job)
    assert recipients(end(job), Shutdown) == sorted(WORKERS)
    assert migration.report().state is MigrationState.ENDED_EARLY
    assert migration.report().seconds == 1.0, "callers learn that it is over"


def test_reports_of_an_earlier_migration_do_not_count():
    job = running_job()
    migrate(job)
    all_announced(job)
    step_made(job, 1)
    migrate(job, groups=(0, 0, 1, 1))
    assert all_announced(job, number=0) == []
    all_announced(job, number=1)
    assert step_made(job, 1, moves=((1, 0),)) == []
    assert job.core.migrations.in_step


class Workers:
    """Answers to a job's commands, each worker's in order; `checked` holds every command against the job's state."""

    def __init__(self, job):
        self.job = job
        self.owed = {worker: deque() for worker in WORKERS}
        self.switched, self.stopped, self.committing = set(), set(), None

    def take(self, effects):
        for effect in effects:
            if isinstance(effect, Tell):
                self.obey(effect.worker, effect.command)
            elif isinstance(effect, Commit):
                assert self.committing is None, "a commit began before the one before it was carried out"
                self.committing = effect.checkpoint

    def commit(self, now):
        """Commit the output that is to be committed."""
        if self.committing is not None:
            checkpoint, self.committing = self.committing, None
            self.take(self.job.committed(checkpoint, now=now))

    def obey(self, worker, command):
        migrations, owed = self.job.core.migrations, self.owed[worker]
        if isinstance(command, BeginCheckpoint):
            assert self.committing is None, "a checkpoint began during a commit"
            assert not migrations.in_step, "a checkpoint began during a step"
            owed.append(Prepared(command.checkpoint, {}))
            if worker == FEEDERS[0] or FEEDERS[0] in self.stopped:
                for member in MEMBERS:
                    self.owed[member].append(Prepared(command.checkpoint, {}))
        elif isinstance(command, Announce):
            owed.append(Announced(command.number))
        elif isinstance(command, Switch):
            assert self.job.core.checkpoints.pending is None, "a step began during a checkpoint"
            if command.version not in self.switched:
                self.switched.add(command.version)
                for move in migrations.current.step.moves:
                    self.owed[f"aggregate-{move.target}"].append(Arrived(command.version, move.source, 1, 1))
        elif isinstance(command, StopSource):
            assert not migrations.in_step, "the sources were stopped during a step"
            self.end(worker)

    def end(self, source):
        if source not in self.stopped:
            self.stopped.add(source)
            self.owed[source].append(Finished({}))
            if self.stopped.issuperset(FEEDERS):
                for member in MEMBERS:
                    self.owed[member].append(Finished({}))

    def answer(self, worker, now):
        if self.owed[worker]:
            self.take(self.job.report(worker, self.owed[worker].popleft(), now))


@pytest.mark.slow
def test_checkpoints_and_steps_never_overlap_whatever_the_order_of_events():
    steps = checkpoints = stops = during_commits = 0
    for seed in range(1_000):
        random, now = Random(seed), 0.0
        job = running_job(interval=random.choice((0.1, 1.0, 10.0)))
        core, workers, patience = job.core, Workers(job), random.choice((0.3, 0.02))
        for _ in range(random.randint(20, 200)):
            now += 0.3
            event = random.random()
            if event < 0.1:
                workers.take(job.tick(now))
            elif event < 0.8:
                done = sum(migration.steps_done for migration in core.migrations.history)
                workers.answer(random.choice(WORKERS), now)
                made = sum(migration.steps_done for migration in core.migrations.history) - done
                during_commits += made if workers.committing is not None else 0
            elif event < 0.9:
                if random.random() < patience:
                    workers.commit(now)
            elif event < 0.997:
                if core.state is JobState.RUNNING and core.migrations.current is None:
                    workers.take(migrate(job, random.choices((0, 1), k=4), random.choice(LIVE), now)[1])
            else:
                stops += core.migrations.in_step
                workers.take(job.stop())
        workers.take(job.stop())
        while any(workers.owed.values()) or workers.committing is not None:
            workers.commit(now)
            workers.answer(random.choice(WORKERS), now)
        assert core.state is JobState.FINISHED
        assert core.migrations.current is None
        steps += sum(migration.steps_done for migration in core.migrations.history)
        checkpoints += core.checkpoints.completed
    assert steps > 1_000
    assert checkpoints > 1_000
    assert stops > 50
    assert during_commits > 100
