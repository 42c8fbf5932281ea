"""Settings that can't work are refused when they are made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.engine.errors import FlowError, RequestError
from evenflow.scheduler.configs.autoscale import AutoscaleConfig
from evenflow.scheduler.configs.balance import BalanceConfig
from evenflow.scheduler.configs.changes import changed
from evenflow.scheduler.configs.checkpoint import CheckpointConfig
from evenflow.scheduler.configs.job import JobConfig
from evenflow.scheduler.configs.run import MetricsConfig, NetworkConfig
from evenflow.scheduler.configs.worker import WorkerConfig
from evenflow.scheduler.policies.dhalion import Dhalion
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.policies.pid import PidPolicy
from evenflow.scheduler.policies.queueing import QueueingPolicy


def test_defaults_work():
    settings = JobConfig().task_settings()
    assert (settings.batch_rows, settings.linger, settings.key_groups) == (32_768, 0.005, 1024)


WHOLE = [
    (JobConfig, "parallelism"),
    (JobConfig, "key_groups"),
    (NetworkConfig, "batch_rows"),
    (NetworkConfig, "source_rows"),
    (NetworkConfig, "credit_batches"),
    (NetworkConfig, "credit_bytes"),
    (CheckpointConfig, "kept"),
    (BalanceConfig, "windows"),
    (AutoscaleConfig, "min_parallelism"),
    (AutoscaleConfig, "max_parallelism"),
]


@pytest.mark.parametrize(("group", "name"), WHOLE)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "4", None])
def test_a_wrong_number_is_refused_by_name(group, name, value):
    with pytest.raises(FlowError, match=f"{group.__name__}: {name} is .*; expected a whole number of at least 1"):
        group(**{name: value})


@pytest.mark.parametrize("groups", [3, 1000, 65_536])
def test_key_groups_are_a_power_of_two_up_to_32768(groups):
    with pytest.raises(FlowError, match="expected a power of two up to 32768"):
        JobConfig(key_groups=groups)


LONGER = [
    (CheckpointConfig, "interval"),
    (CheckpointConfig, "timeout"),
    (MetricsConfig, "window"),
    (MetricsConfig, "latency_interval"),
    (WorkerConfig, "start_timeout"),
    (WorkerConfig, "heartbeat_timeout"),
    (AutoscaleConfig, "interval"),
    (AutoscaleConfig, "latency_target"),
    (AutoscaleConfig, "catch_up"),
]


@pytest.mark.parametrize(("group", "name"), LONGER)
def test_interval_of_zero_is_refused_by_name(group, name):
    with pytest.raises(FlowError, match=f"{group.__name__}: {name} must be longer than zero"):
        group(**{name: 0})


def test_no_linger_and_no_checkpoints_are_fine():
    config = JobConfig(network=NetworkConfig(linger=0), checkpoint=CheckpointConfig(interval=None))
    assert config.task_settings().linger == 0.0
    assert config.checkpoint.interval_s is None


def test_wrong_duration_is_refused_by_name():
    with pytest.raises(FlowError, match="NetworkConfig: linger 'soon' is not a duration"):
        NetworkConfig(linger="soon")


def test_group_of_another_kind_is_refused_by_name():
    with pytest.raises(FlowError, match=r"JobConfig: state is CheckpointConfig.*; expected ef.StateConfig\(...\)"):
        JobConfig(state=CheckpointConfig())


def test_migration_by_restart_needs_a_folder_for_checkpoints():
    with pytest.raises(FlowError, match="'restart' goes through a checkpoint: it needs CheckpointConfig"):
        JobConfig(migration_strategy="restart")
    assert JobConfig(migration_strategy="restart", checkpoint=CheckpointConfig("/saved")).migration_strategy == "restart"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"policy": "consistent"}, "'consistent' can't balance a job: use hotspot, lpt, off"),
        ({"threshold": 1.0}, "threshold is 1.0; expected a factor of at least 1.05"),
        ({"least_busy": 2}, "least_busy is 2; expected a part of a worker's time"),
        ({"max_bytes": -1}, "max_bytes is -1; expected 0 or more"),
        ({"after": "soon"}, "after 'soon' is not a duration"),
    ],
)
def test_balancing_that_cannot_work_is_refused_before_the_job_starts(setting, message):
    with pytest.raises(FlowError, match=message):
        BalanceConfig(**setting)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"policy": "ds3"}, "'ds3' can't scale a job: use ds2, dhalion, threshold, queueing, pid, latency, stela, off"),
        ({"mode": "ask"}, "AutoscaleConfig: mode is 'ask'; expected one of act, advise"),
        ({"min_parallelism": 3, "max_parallelism": 2}, "max_parallelism is 2, below min_parallelism, which is 3"),
        ({"max_change": 0}, "AutoscaleConfig: max_change is 0; expected a whole number of at least 1"),
        ({"policy": Ds2}, "AutoscaleConfig: policy is <class .*>; expected a name, or a policy such as ef.Ds2()"),
        ({"policy": 7}, "AutoscaleConfig: policy is 7; expected a name, or a policy such as ef.Ds2()"),
        ({"policy": "queueing"}, "the scaling policy queueing keeps a latency: say which"),
        ({"policy": PidPolicy(band=0.2)}, "the scaling policy pid keeps a latency: say which"),
    ],
)
def test_scaling_that_cannot_work_is_refused_before_the_job_starts(setting, message):
    with pytest.raises(FlowError, match=message):
        AutoscaleConfig(**setting)


def test_scaling_needs_metrics_before_the_job_starts_and_while_it_runs():
    unmeasured = JobConfig(metrics=MetricsConfig(enabled=False))
    with pytest.raises(FlowError, match="the scaling policy ds2 decides by what the workers measure"):
        replace(unmeasured, autoscale=AutoscaleConfig("ds2"))
    with pytest.raises(RequestError, match="the scaling policy ds2 decides by what the workers measure"):
        changed(unmeasured, {"autoscale.policy": "ds2"})


def test_scaling_policy_gets_interval_bounds_and_target():
    settings = AutoscaleConfig("pid", interval="5s", min_parallelism=2, max_parallelism=8, latency_target="200ms").policy_settings()
    assert (settings.interval_s, settings.warm_up_s) == (5, 5)
    assert (settings.min_parallelism, settings.max_parallelism, settings.latency_target_ms) == (2, 8, 200)


def test_scaling_policy_gets_its_largest_change_and_its_time_to_catch_up():
    settings = AutoscaleConfig(max_change=2, catch_up="1m").policy_settings()
    assert (settings.max_change, settings.catch_up_s) == (2, 60)


def test_name_stands_for_the_configured_policy_or_for_another_one_with_its_defaults():
    config = AutoscaleConfig(Ds2(min_change=2))
    assert config.chosen("ds2") == config.chosen(config.policy) == Ds2(min_change=2)
    assert config.chosen("dhalion") == Dhalion()
    assert config.chosen(Ds2()) == Ds2()
    assert config.chosen("off") is None
    assert AutoscaleConfig("ds2").chosen("ds2") == Ds2()


def test_number_of_processors_is_a_goal_without_a_latency():
    assert AutoscaleConfig(QueueingPolicy(processors=12)).problem("off", "act") is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"placement": "anywhere"}, "placement is 'anywhere'; expected one of spread, pack"),
        ({"warm_spares": -1}, "warm_spares is -1; expected a whole number of at least 0"),
        ({"warm_spares": True}, "warm_spares is True; expected a whole number of at least 0"),
        ({"cpus": -0.5}, "cpus is -0.5; expected CPUs of at least 0"),
    ],
)
def test_an_impossible_placement_is_refused_before_the_job_starts(setting, message):
    with pytest.raises(FlowError, match=message):
        WorkerConfig(**setting)


def test_log_level_goes_to_the_workers():
    assert JobConfig().of_run("job").log_level is None
    assert JobConfig(log_level="debug").of_run("job").log_level == "debug"
    with pytest.raises(FlowError, match="JobConfig: log_level is 'loud'; expected one of debug, info, warning, error"):
        JobConfig(log_level="loud")


def test_defaults_fall_silent_where_nothing_is_measured():
    config = JobConfig(metrics=MetricsConfig(enabled=False))
    assert (config.balancer, config.scaling_policy) == ("off", None)
    assert (JobConfig().balancer, JobConfig().scaling_policy) == ("hotspot", Ds2())


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"balance": BalanceConfig("hotspot")}, "the balancer hotspot decides by what the workers measure"),
        ({"autoscale": AutoscaleConfig("ds2")}, "the scaling policy ds2 decides by what the workers measure"),
        ({"autoscale": AutoscaleConfig(mode="act")}, "the scaling policy ds2 decides by what the workers measure"),
    ],
)
def test_policies_that_were_chosen_are_refused_where_nothing_is_measured(settings, problem):
    with pytest.raises(FlowError, match=problem):
        JobConfig(metrics=MetricsConfig(enabled=False), **settings)
