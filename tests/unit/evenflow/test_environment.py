"""A job takes settings from its environment where the program has given none."""

from __future__ import annotations

import time
from dataclasses import fields

import pytest

import evenflow as ef
from evenflow.environment import VARIABLES, with_environment

SLEEP = time.sleep
GIVEN = {
    "EVENFLOW_CHECKPOINT": "s3://bucket/jobs",
    "EVENFLOW_METRICS_PORT": "9400",
    "EVENFLOW_WORKER_CPUS": "1",
    "EVENFLOW_WORKER_START_TIMEOUT": "15m",
    "HOME": "/home/user",
}


def test_the_environment_gives_what_the_program_left_open():
    config = with_environment(ef.JobConfig(parallelism=3), GIVEN)
    assert (config.parallelism, config.checkpoint.dir, config.metrics.port) == (3, "s3://bucket/jobs", 9400)
    assert (config.worker.cpus, config.worker.start_timeout) == (1.0, "15m")


def test_settings_of_the_program_have_priority():
    own = ef.JobConfig(
        checkpoint=ef.CheckpointConfig("here", interval="1s"), metrics=ef.MetricsConfig(port=1), worker=ef.WorkerConfig(cpus=2)
    )
    config = with_environment(own, GIVEN)
    assert (config.checkpoint, config.metrics.port, config.worker.cpus) == (own.checkpoint, 1, 2)
    assert config.worker.start_timeout == "15m"


def test_other_settings_of_a_group_stay():
    config = with_environment(ef.JobConfig(checkpoint=ef.CheckpointConfig(interval="1s")), GIVEN)
    assert config.checkpoint == ef.CheckpointConfig("s3://bucket/jobs", interval="1s")


def test_without_variables_and_with_empty_ones_nothing_changes():
    config = ef.JobConfig()
    assert with_environment(config, {}) == config
    assert with_environment(config, dict.fromkeys(VARIABLES, "")) == config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EVENFLOW_METRICS_PORT", "many"),
        ("EVENFLOW_METRICS_PORT", "70000"),
        ("EVENFLOW_WORKER_CPUS", "-1"),
        ("EVENFLOW_WORKER_START_TIMEOUT", "x"),
    ],
)
def test_a_value_that_can_not_be_used_is_refused_by_the_variable_s_name(name, value):
    with pytest.raises(ef.FlowError, match=f"environment variable {name}='{value}'"):
        with_environment(ef.JobConfig(), {name: value})


def test_variables_name_settings_of_a_job():
    groups = {field.name: field.default_factory for field in fields(ef.JobConfig)}
    names = {name for name, setting in VARIABLES.items() if setting.name in {field.name for field in fields(groups[setting.group])}}
    assert VARIABLES.keys() == names


def test_a_job_keeps_its_state_in_the_folder_of_its_environment(no_waiting_and_no_cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", SLEEP)  # its handle asks for news
    monkeypatch.setenv("EVENFLOW_CHECKPOINT", str(tmp_path))
    flow, rows = ef.Dataflow("placed"), []
    flow.read(ef.from_items([{"n": 1}])).write(ef.to_list(rows))
    flow.run(runtime="local").wait("30s")
    assert rows == [{"n": 1}]
    assert list((tmp_path / "placed").glob("checkpoint-*/manifest"))
