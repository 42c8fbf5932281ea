"""A migration by the strategy `restart` goes through a checkpoint and a new attempt."""

from __future__ import annotations

import numpy as np
import pytest
from job_script import WORKERS, kinds, manifests, recipients, saving_job

from evenflow.engine.protocol.routing import RoutingTable
from evenflow.scheduler.protocol.effects import Commit, RestoreSinks
from evenflow.scheduler.protocol.messages import BeginCheckpoint, StopSource
from evenflow.scheduler.protocol.reports import MigrationState


def migrate_by_restart(job, now):
    """Begin to move all keys to worker 1. Return the target routing table and the migration."""
    job.now = now
    target = RoutingTable(np.array([1, 1, 1, 1], np.uint16))
    job.core.record.happens("a migration is asked for", now)
    return target, job.core.reconfiguration.move(job.core.plan.stage_of("aggregate"), "restart", target, "by hand")


def test_migration_by_restart_goes_through_a_checkpoint_of_its_own():
    job = saving_job()
    target, migration = migrate_by_restart(job, 3.0)
    assert recipients(job.core.effects(), BeginCheckpoint(1)) == ["from_items-0", "from_items-1"]
    (manifest,) = manifests(job.prepare(1, 4.0))
    assert kinds(job.saved(1)) == [Commit]
    (sinks,) = job.committed(1)
    assert sinks == RestoreSinks(1, manifest, None)
    (deploy,) = job.sinks_restored()
    assert (deploy.manifest, deploy.plan.tables["aggregate"]) == (manifest, target)
    assert migration.state is MigrationState.RUNNING
    job.run(5.0)
    assert (migration.state, migration.steps_done, job.core.migrations.tables["aggregate"]) == (MigrationState.DONE, 1, target)


def test_stop_during_a_migration_by_restart_waits_until_it_is_done():
    job = saving_job()
    migrate_by_restart(job, 3.0)
    job.core.effects()
    assert job.stop() == []
    job.prepare(1, 4.0)
    job.saved(1)
    job.committed(1)
    job.sinks_restored()
    effects = [effect for worker in WORKERS for effect in job.ready(worker)]
    assert recipients(effects, StopSource()) == ["from_items-0", "from_items-1"]


@pytest.mark.parametrize(
    ("accident", "problem"),
    [
        pytest.param(lambda job: job.saved(1, "full"), "its checkpoint failed", id="its checkpoint fails"),
        pytest.param(
            lambda job: [job.lost("aggregate-0"), job.saved(1, "full")],
            "the job was restored from its last checkpoint",
            id="a worker is lost and its checkpoint fails",
        ),
    ],
)
def test_migration_by_restart_ends_early_without_its_checkpoint(accident, problem):
    job = saving_job()
    before = job.core.migrations.tables["aggregate"]
    _, migration = migrate_by_restart(job, 3.0)
    job.prepare(1, 4.0)
    accident(job)
    assert (migration.state, migration.problem) == (MigrationState.ENDED_EARLY, problem)
    assert job.core.migrations.tables["aggregate"] == before


def test_migration_by_restart_ends_early_if_a_worker_is_lost_before_its_checkpoint_is_complete():
    job = saving_job()
    before = job.core.migrations.tables["aggregate"]
    _, migration = migrate_by_restart(job, 3.0)
    job.prepare(1, 4.0, WORKERS[:-1])
    job.lost("aggregate-1")
    assert migration.state is MigrationState.ENDED_EARLY
    assert job.core.migrations.tables["aggregate"] == before


def test_migration_by_restart_goes_on_with_an_accident_behind_its_checkpoint():
    job = saving_job()
    target, migration = migrate_by_restart(job, 3.0)
    job.prepare(1, 4.0)
    job.lost("aggregate-0")
    job.saved(1)
    _, deploy = job.restart(5.0)
    assert deploy.plan.tables["aggregate"] == target
    assert migration.state is MigrationState.DONE
