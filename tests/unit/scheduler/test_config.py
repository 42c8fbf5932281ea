"""Settings that can't work are refused when they are made."""

from __future__ import annotations

import pytest

from evenflow.engine.errors import FlowError
from evenflow.scheduler.config import JobConfig


def test_defaults_work():
    settings = JobConfig().task_settings()
    assert (settings.batch_rows, settings.linger, settings.key_groups) == (32_768, 0.005, 1024)


@pytest.mark.parametrize("name", ["parallelism", "batch_rows", "source_rows", "key_groups", "credit_batches", "credit_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "4", None])
def test_number_that_is_none_is_refused_by_name(name, value):
    with pytest.raises(FlowError, match=f"JobConfig: {name} is .*; expected a whole number of at least 1"):
        JobConfig(**{name: value})


@pytest.mark.parametrize("groups", [3, 1000, 65_536])
def test_key_groups_are_a_power_of_two_up_to_32768(groups):
    with pytest.raises(FlowError, match="expected a power of two up to 32768"):
        JobConfig(key_groups=groups)


@pytest.mark.parametrize("name", ["checkpoint_interval", "metrics_window", "latency_interval", "start_timeout"])
def test_interval_of_zero_is_refused_by_name(name):
    with pytest.raises(FlowError, match=f"JobConfig: {name} must be longer than zero"):
        JobConfig(**{name: 0})


def test_no_linger_and_no_checkpoints_are_fine():
    config = JobConfig(linger=0, checkpoint_interval=None)
    assert config.task_settings().linger == 0.0


def test_wrong_duration_is_refused_by_name():
    with pytest.raises(FlowError, match="JobConfig: linger 'soon' is not a duration"):
        JobConfig(linger="soon")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"migration_strategy": "restart"}, "migration_strategy 'restart' goes through a savepoint: it needs checkpoint_dir"),
        ({"migration_strategy": "slow"}, "migration_strategy is 'slow'; expected one of"),
        ({"balancer": "two_choices"}, "'two_choices' can't balance a job: use hotspot, static, consistent, lpt, off"),
        ({"balance_threshold": 1.0}, "balance_threshold is 1.0; expected a factor of at least 1.05"),
        ({"balance_least_busy": 2}, "balance_least_busy is 2; expected a part of a worker's time"),
        ({"balance_max_bytes": -1}, "balance_max_bytes is -1; expected 0 or more"),
        ({"balance_after": "soon"}, "balance_after 'soon' is not a duration"),
    ],
)
def test_balancing_that_cannot_work_is_refused_before_the_job_starts(setting, message):
    with pytest.raises(FlowError, match=message):
        JobConfig(**setting)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"autoscaler": "ds3"}, "'ds3' can't scale a job: use ds2, dhalion, threshold, queueing, pid, latency, stela, off"),
        ({"autoscaler_mode": "ask"}, "JobConfig: autoscaler_mode is 'ask'; expected one of act, advise"),
        ({"autoscaler_interval": 0}, "JobConfig: autoscaler_interval must be longer than zero"),
        ({"latency_target": 0}, "JobConfig: latency_target must be longer than zero"),
        ({"min_parallelism": 0}, "JobConfig: min_parallelism is 0; expected a whole number of at least 1"),
        ({"max_parallelism": None}, "JobConfig: max_parallelism is None; expected a whole number of at least 1"),
        ({"min_parallelism": 3, "max_parallelism": 2}, "max_parallelism is 2, below min_parallelism, which is 3"),
        ({"autoscaler_settings": {"max_parallelism": 3}}, "autoscaler_settings has no 'max_parallelism'; expected some of max_change, "),
        ({"autoscaler_settings": {"max_change": 0}}, "policy: max_change is 0: it must be a whole number, 1 or more"),
        ({"autoscaler": "queueing"}, "the scaling policy queueing keeps a latency: say which"),
        ({"autoscaler": "ds2", "metrics": False}, "the scaling policy ds2 decides by what the workers measure"),
    ],
)
def test_scaling_that_cannot_work_is_refused_before_the_job_starts(setting, message):
    with pytest.raises(FlowError, match=message):
        JobConfig(**setting)


def test_scaling_policy_is_told_interval_bounds_and_target():
    config = JobConfig(autoscaler="pid", autoscaler_interval="5s", min_parallelism=2, max_parallelism=8, latency_target="200ms")
    told = config.policy_settings()
    assert (told.interval_s, told.warm_up_s, told.min_parallelism, told.max_parallelism, told.latency_target_ms) == (5, 5, 2, 8, 200)


def test_scaling_policy_is_told_settings_of_its_own():
    told = JobConfig(autoscaler_settings={"max_change": 2, "catch_up_s": 60}).policy_settings()
    assert (told.max_change, told.catch_up_s) == (2, 60)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"placement": "anywhere"}, "placement is 'anywhere'; expected one of spread, pack"),
        ({"warm_spares": -1}, "warm_spares is -1; expected a whole number of at least 0"),
        ({"warm_spares": True}, "warm_spares is True; expected a whole number of at least 0"),
        ({"worker_cpus": -0.5}, "worker_cpus is -0.5; expected CPUs of at least 0"),
    ],
)
def test_placement_that_cannot_be_is_refused_before_the_job_starts(setting, message):
    with pytest.raises(FlowError, match=message):
        JobConfig(**setting)
