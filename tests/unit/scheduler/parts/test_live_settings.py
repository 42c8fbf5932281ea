"""Settings of a running job change in place: its parts, its workers and later coordinators continue with the new ones."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import msgpack
import pytest
from job_script import LOST, WORKERS, ScriptedJob, counting, kinds, new_saving_job, of_kind, recipients, saving_job

from evenflow.engine.errors import JobNotRunningError, RequestError
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.protocol.changed_settings import ChangedSettings, SettingChange
from evenflow.scheduler.protocol.effects import JobState, RememberSettings, Spawn, Warn
from evenflow.scheduler.protocol.messages import ApplySettings, BeginCheckpoint, CheckpointFailed
from evenflow.scheduler.protocol.reports import MigrationReport
from evenflow.scheduler.protocol.requests import Autoscale, Balance, ChangeSettings, MoveKeys, Scale, ShowHistory, ShowView
from evenflow.scheduler.protocol.restore_point import RestorePoint


def change(job, now=None, **settings):
    """Change settings, named with two underscores in place of the dot. Return the changes and the effects."""
    answer = job.ask(ChangeSettings({name.replace("__", "."): value for name, value in settings.items()}), now)
    return answer, job._effects()


def begins(job, now):
    return bool(recipients(job.tick(now), BeginCheckpoint))


def take_over(job):
    """Return a job that takes over, with what the last one remembered as it comes out of the store."""
    kept = msgpack.unpackb(msgpack.packb(asdict(job.core.record.changed_settings)))
    begin = RestorePoint(takes_over=True, attempt=100, settings=ChangedSettings(**kept))
    return ScriptedJob(job.core.plan, job.core.record.begun_with, begin)


def test_answer_names_the_settings_that_have_another_value():
    job = saving_job()
    answer, _ = change(job, checkpoint__interval="5s", checkpoint__pause=0, linger="2ms")
    assert answer == (SettingChange("checkpoint.interval", 10.0, "5s"), SettingChange("linger", "5ms", "2ms"))
    assert list(map(str, answer)) == ["checkpoint.interval: 10.0 -> 5s", "linger: 5ms -> 2ms"]


def test_nothing_happens_if_all_settings_have_their_values():
    assert change(saving_job(), linger="5ms", restart__most=2) == ((), [])


def test_shorter_interval_counts_from_where_the_previous_one_began():
    job = saving_job()
    change(job, 3.0, checkpoint__interval="5s")
    assert not begins(job, 4.9)
    assert begins(job, 5.0)


def test_interval_that_is_over_by_the_new_setting_begins_a_checkpoint_at_once():
    job = saving_job()
    change(job, 8.0, checkpoint__interval="5s")
    assert begins(job, 8.0)


def test_longer_interval_counts_from_where_the_previous_one_began():
    job = saving_job()
    change(job, 8.0, checkpoint__interval="20s")
    assert not begins(job, 19.9)
    assert begins(job, 20.0)


def test_first_interval_counts_from_the_change():
    job = saving_job(checkpoint={"interval": None})
    assert not begins(job, 100.0)
    change(job, 100.0, checkpoint__interval="5s")
    assert not begins(job, 104.9)
    assert begins(job, 105.0)


def test_job_without_an_interval_begins_no_checkpoint_any_more():
    job = saving_job()
    change(job, 3.0, checkpoint__interval=None)
    assert not begins(job, 1000.0)


def test_interval_after_a_checkpoint_counts_from_its_end_and_so_does_the_pause():
    job = saving_job()
    job.take_checkpoint(10.0)
    change(job, 12.0, checkpoint__interval="5s")
    assert not begins(job, 14.9)
    change(job, 14.9, checkpoint__pause="30s")
    assert not begins(job, 39.9)
    assert begins(job, 40.0)


def test_interval_that_changes_before_all_workers_have_started_counts_from_their_start():
    job = new_saving_job()
    job.begin(0.0)
    job.sinks_restored()
    change(job, 1.0, checkpoint__interval="5s")
    job.run(now=50.0)
    assert not begins(job, 54.9)
    assert begins(job, 55.0)


def test_timeout_holds_for_the_checkpoint_under_way():
    job = saving_job()
    assert begins(job, 10.0)
    change(job, 11.0, checkpoint__timeout="2s")
    job.tick(14.1)
    assert job.core.state is JobState.RESTARTING


def test_tolerable_failures_hold_for_the_next_failure():
    job = saving_job()
    change(job, 1.0, checkpoint__tolerable_failures=0)
    assert begins(job, 10.0)
    for worker in WORKERS:
        job.report(worker, CheckpointFailed(1, "full", {}))
    assert job.core.state is JobState.FAILED


def test_restart_strategy_holds_for_the_next_failure():
    job = saving_job()
    change(job, 1.0, restart__strategy="none")
    job.failed(LOST, 2.0)
    assert job.core.state is JobState.FAILED
    job = saving_job(restart={"strategy": "none"})
    change(job, 1.0, restart__strategy="fixed", restart__delay="7s")
    job.failed(LOST, 2.0)
    assert (job.core.state, job.core.record.next_try) == (JobState.RESTARTING, 9.0)


def test_migration_strategy_holds_for_the_next_move():
    job = saving_job()
    change(job, migration_strategy="pause")
    job.ask(MoveKeys("aggregate", (0,), (), 1))
    assert job.ask(ShowHistory(MigrationReport))[-1].strategy == "pause"


def test_balancing_of_all_operators_follows_a_new_policy_and_that_of_one_stays_without():
    job = saving_job()
    job.ask(Balance("aggregate", "lpt"))
    change(job, balance__threshold=1.5)
    assert job.core.balancing.observation("aggregate")[0] == "lpt"
    assert job.core.balancing._balancings["aggregate"]._trigger._settings.threshold == 1.5
    change(job, balance__policy="hotspot")
    assert job.core.balancing.observation("aggregate")[0] == "hotspot"
    change(job, balance__policy="off")
    assert job.core.balancing.observation("aggregate")[0] == "off"


def test_view_has_the_new_settings():
    job = saving_job()
    change(job, balance__threshold=1.5, balance__windows=7, autoscale__max_parallelism=3, checkpoint__interval="1m")
    view = job.ask(ShowView())
    assert (view.threshold, view.plan_windows, view.policy_settings.max_parallelism, view.checkpoint_interval) == (1.5, 7, 3, 60.0)


def test_scaling_follows_a_new_policy_with_its_bounds_and_mode():
    job = saving_job()
    change(job, autoscale__policy=Ds2(min_change=2), autoscale__mode="advise", autoscale__interval="1s", autoscale__max_parallelism=3)
    scaling = job.core.autoscaling
    assert (scaling.policy, scaling._controller.mode, scaling._settings.max_parallelism) == ("ds2", "advise", 3)
    change(job, autoscale__policy="off")
    assert scaling.policy == "off"


def test_autoscaler_changes_policy_and_mode_only_and_is_remembered():
    job = saving_job(autoscale={"policy": Ds2(min_change=2), "max_parallelism": 3})
    job.ask(Autoscale("off", "advise"))
    assert of_kind(job._effects(), RememberSettings) == [RememberSettings(ChangedSettings({"autoscale.policy": "off"}))]
    job.ask(Autoscale("ds2", "act"))
    config = job.core.record.config.autoscale
    assert (config.policy, config.mode, config.max_parallelism) == (Ds2(min_change=2), "act", 3), "the settings that the job knows"
    assert of_kind(job._effects(), RememberSettings) == [RememberSettings(ChangedSettings({"autoscale.mode": "act"}))]


def test_running_workers_get_linger_and_log_level():
    job = saving_job()
    assert recipients(change(job, linger="2ms")[1], ApplySettings(0.002, None)) == sorted(WORKERS)
    assert recipients(change(job, log_level="debug")[1], ApplySettings(0.002, "debug")) == sorted(WORKERS)
    assert recipients(change(job, checkpoint__interval="5s")[1], ApplySettings) == []


def test_workers_of_a_new_attempt_get_the_settings_when_they_are_ready():
    job = saving_job()
    change(job, linger="2ms")
    job.failed(LOST, 1.0)
    assert recipients(change(job, log_level="info")[1], ApplySettings) == [], "there are none now"
    job.tick(2.0)
    job.sinks_restored()
    told = [recipients(job.ready(worker), ApplySettings(0.002, "info")) for worker in WORKERS]
    assert told == [[worker] for worker in WORKERS]


def test_workers_that_join_get_the_settings_when_they_are_ready():
    job = saving_job()
    change(job, linger="2ms")
    job.ask(Scale("aggregate", 3))
    (spawn,) = of_kind(job._effects(), Spawn)
    (joining,) = spawn.workers
    change(job, linger="3ms")
    assert recipients(job.ready(joining), ApplySettings(0.003, None)) == [joining]
    assert joining in recipients(change(job, linger="4ms")[1], ApplySettings(0.004, None))


def test_workers_get_nothing_without_a_change():
    job = new_saving_job()
    job.start()
    assert job.core.state is JobState.RUNNING


def test_coordinator_that_takes_over_has_the_changed_settings():
    job = saving_job()
    policy = Ds2(min_change=2)
    _, effects = change(
        job, checkpoint__interval=timedelta(seconds=5), linger=0.002, autoscale__policy=policy, balance__policy="hotspot", log_level="info"
    )
    assert RememberSettings in kinds(effects)
    after = take_over(job)
    config = after.core.record.config
    assert (config.checkpoint.interval, config.network.linger, config.log_level) == (5.0, 0.002, "info")
    assert (config.autoscale.policy, after.core.autoscaling.policy) == (policy, "ds2")
    assert after.core.balancing.observation("aggregate")[0] == "hotspot"
    after.begin(100.0)
    after.sinks_restored()
    assert all(recipients(after.ready(worker, 100.0), ApplySettings(0.002, "info")) for worker in WORKERS)
    assert not begins(after, 104.9)
    assert begins(after, 105.0)


def test_coordinator_that_takes_over_has_the_balancers_of_single_operators():
    job = saving_job(balance={"policy": "hotspot"})
    job.ask(Balance("aggregate", "off"))
    assert job.core.record.changed_settings == ChangedSettings({}, {"aggregate": "off"})
    after = take_over(job)
    assert after.core.balancing.observation("aggregate")[0] == "off"
    change(after, balance__policy="lpt")
    assert after.core.record.changed_settings == ChangedSettings({"balance.policy": "lpt"})


def test_settings_that_have_their_first_values_again_are_remembered_as_such():
    job = saving_job()
    change(job, linger="2ms", log_level="info")
    _, effects = change(job, linger="5ms")
    assert of_kind(effects, RememberSettings) == [RememberSettings(ChangedSettings({"log_level": "info"}))]


class Own(Ds2):
    """A policy that no other process finds by its name."""


def test_policy_of_the_user_is_used_and_its_loss_with_the_coordinator_is_announced():
    job = saving_job()
    job.ask(ChangeSettings({"autoscale.policy": Own(), "linger": "2ms"}))
    effects = job.core.effects()
    assert [effect.changed for effect in of_kind(effects, RememberSettings)] == [ChangedSettings({"linger": "2ms"})]
    assert "can't remember its scaling policy ds2: it is not one of evenflow's" in of_kind(effects, Warn)[0].text
    assert type(job.core.autoscaling._policy) is Own
    assert take_over(job).core.autoscaling._policy == Ds2(), "that of the job's start"


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        pytest.param("checkpoint.dir", "/other", r"CheckpointConfig\(dir=\.\.\.\) can't change while the job runs", id="folder"),
        pytest.param("checkpoint.kept", 5, r"CheckpointConfig\(kept=\.\.\.\) can't change", id="kept checkpoints"),
        pytest.param("state.backend", "lmdb", r"StateConfig\(backend=\.\.\.\) can't change.*stop the job with a savepoint", id="backend"),
        pytest.param("worker.cpus", 2, r"WorkerConfig\(cpus=\.\.\.\) can't change", id="worker"),
        pytest.param("network.batch_rows", 10, r"NetworkConfig\(batch_rows=\.\.\.\) can't change", id="batches"),
        pytest.param("parallelism", 3, r"JobConfig\(parallelism=\.\.\.\) can't change", id="parallelism"),
        pytest.param("network.linger", "2ms", "no setting 'network.linger'.* linger, migration_strategy", id="linger by its group"),
        pytest.param("balance.treshold", 2, "no setting 'balance.treshold' that can change", id="misspelt"),
        pytest.param("balance", 2, "no setting 'balance'", id="group"),
        pytest.param("checkpoint.interval", "soon", "CheckpointConfig: interval 'soon' is not a duration", id="no duration"),
        pytest.param("balance.policy", "warmspot", "'warmspot' can't balance a job", id="unknown balancer"),
        pytest.param("autoscale.policy", "pid", "the scaling policy pid keeps a latency: say which", id="policy without its goal"),
        pytest.param("autoscale.min_parallelism", 99, "max_parallelism is 16, below min_parallelism", id="bounds"),
        pytest.param("restart.strategy", "never", "RestartConfig: strategy is 'never'; expected one of", id="unknown strategy"),
        pytest.param("log_level", "loud", "log_level is 'loud'; expected one of debug, info", id="unknown level"),
        pytest.param("migration_strategy", "slow", "migration_strategy is 'slow'", id="unknown migration strategy"),
    ],
)
def test_wrong_setting_is_refused_by_name_and_the_others_with_it(setting, value, problem):
    job = saving_job()
    before = job.core.record.config
    with pytest.raises(RequestError, match=problem):
        job.ask(ChangeSettings({"linger": "2ms", setting: value}))
    assert job.core.record.config == before
    assert job._effects() == []


def test_fixed_setting_with_the_value_that_it_has_is_no_change():
    assert change(saving_job(), checkpoint__dir="saved", checkpoint__kept=3) == ((), [])


def test_moves_by_restart_need_a_checkpoint_folder():
    plan, config = counting()
    with pytest.raises(RequestError, match=r"goes through a checkpoint: it needs CheckpointConfig\(dir=\.\.\.\)"):
        change(ScriptedJob(plan, config).start(), migration_strategy="restart")


def test_job_that_measures_nothing_is_not_scaled():
    with pytest.raises(RequestError, match="the scaling policy ds2 decides by what the workers measure"):
        change(saving_job(metrics={"enabled": False}), autoscale__policy="ds2")


def test_settings_of_a_job_that_has_ended_do_not_change():
    job = saving_job()
    job.cancel()
    with pytest.raises(JobNotRunningError, match="job `f` is cancelled: its settings no longer change"):
        change(job, linger="2ms")
