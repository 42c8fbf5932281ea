"""`job.reconfigure` and `evenflow reconfigure` change settings of a running job, here one of this process."""

from __future__ import annotations

import logging

import pytest
from patience import until

import evenflow as ef
from evenflow.cli import main
from evenflow.reconfiguring import parse_setting, wanted_settings


@pytest.fixture
def job(waiting_for_jobs, monkeypatch, tmp_path):
    """Start an unbounded job that saves its state once an hour. Its handle sleeps between polls, not the test."""
    flow = ef.Dataflow("shop")
    flow.read(ef.generate(keys=10, rate=1000.0)).key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
    checkpoint, autoscale = ef.CheckpointConfig(str(tmp_path), interval="1h"), ef.AutoscaleConfig(interval="9s")
    config = ef.JobConfig(key_groups=16, checkpoint=checkpoint, autoscale=autoscale)
    job = flow.run(runtime="local", config=config)
    monkeypatch.setattr(ef, "connect", lambda name: job)
    monkeypatch.setenv("COLUMNS", "120")
    yield job
    job.cancel()
    job.wait("30s")


def test_a_shorter_interval_takes_checkpoints(job):
    assert job.status().completed_checkpoints == 0
    changes = job.reconfigure(checkpoint=ef.CheckpointConfig(interval="10ms"), linger="2ms")
    assert changes == [ef.SettingChange("checkpoint.interval", "1h", "10ms"), ef.SettingChange("linger", "5ms", "2ms")]
    until(lambda: job.status().completed_checkpoints > 1)


def test_changes_are_printed_as_a_table(job):
    text = str(job.reconfigure(balance=ef.BalanceConfig("lpt", threshold=1.5)))
    assert all(
        part in text for part in ("setting", "before", "after", "balance.policy", "hotspot", "lpt", "balance.threshold", "1.2", "1.5")
    )
    assert str(job.reconfigure(balance=ef.BalanceConfig("lpt", threshold=1.5))) == "no setting has another value than before"


def test_a_group_replaces_that_of_the_job_as_a_whole(job):
    changes = job.reconfigure(autoscale=ef.AutoscaleConfig("dhalion", mode="act"))
    assert [change.setting for change in changes] == ["autoscale.policy", "autoscale.mode", "autoscale.interval"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"checkpoint": ef.CheckpointConfig("/other")}, r"CheckpointConfig\(dir=...\) can't change", id="folder"),
        pytest.param({"state": ef.StateConfig("lmdb")}, r"StateConfig\(backend=...\) can't change", id="state"),
        pytest.param({"worker": ef.WorkerConfig(cpus=3)}, r"WorkerConfig\(cpus=...\) can't change", id="worker"),
        pytest.param({"parallelism": 7}, r"JobConfig\(parallelism=...\) can't change", id="parallelism"),
        pytest.param({"balanse": "hotspot"}, "no setting 'balanse' that can change while a job runs: those that can", id="misspelt"),
        pytest.param({"balance": "hotspot"}, r"reconfigure: balance is 'hotspot'; expected ef.BalanceConfig\(...\)", id="no group"),
        pytest.param({"linger": "soon"}, "NetworkConfig: linger 'soon' is not a duration", id="no duration"),
    ],
)
def test_other_settings_are_refused_by_name(job, given, problem):
    with pytest.raises(ef.RequestError, match=problem):
        job.reconfigure(**given)


def test_folder_of_the_job_may_be_named_again(job, tmp_path):
    assert job.reconfigure(checkpoint=ef.CheckpointConfig(tmp_path, interval="1h")) == []


def test_log_level_of_a_job_in_this_process_holds_until_it_ends(job):
    before = logging.getLogger().level
    job.reconfigure(log_level="error")
    assert logging.getLogger().level == logging.ERROR
    job.cancel()
    job.wait("30s")
    assert logging.getLogger().level == before


def test_fixed_settings_of_a_group_count_only_if_they_are_not_the_defaults():
    assert wanted_settings({"balance": None, "linger": None}) == {}
    assert sorted(wanted_settings({"checkpoint": ef.CheckpointConfig(kept=5)})) == [
        "checkpoint.interval", "checkpoint.kept", "checkpoint.pause", "checkpoint.timeout", "checkpoint.tolerable_failures",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        pytest.param("checkpoint.interval=5s", "checkpoint.interval", "5s", id="duration"),
        pytest.param("checkpoint.interval=0.5", "checkpoint.interval", 0.5, id="seconds"),
        pytest.param("checkpoint.interval=none", "checkpoint.interval", None, id="none"),
        pytest.param("restart.strategy=none", "restart.strategy", "none", id="a choice that is called none"),
        pytest.param("restart.most=3", "restart.most", 3, id="whole number"),
        pytest.param("balance.threshold=1.5", "balance.threshold", 1.5, id="number"),
        pytest.param("balance.split_hot_keys=false", "balance.split_hot_keys", False, id="truth"),
        pytest.param("balance.max_bytes=none", "balance.max_bytes", None, id="no limit"),
        pytest.param("autoscale.policy=ds2", "autoscale.policy", "ds2", id="name"),
        pytest.param("linger=2ms", "linger", "2ms", id="linger"),
        pytest.param("log_level=debug", "log_level", "debug", id="log level"),
        pytest.param("state.backend=lmdb", "state.backend", "lmdb", id="one that the job refuses"),
    ],
)
def test_settings_of_the_command_line_are_values_of_their_types(text, name, value):
    assert parse_setting(text) == (name, value)
    assert type(parse_setting(text)[1]) is type(value)


def test_command_changes_single_settings_and_shows_them(job, capsys):
    assert main(["reconfigure", "shop", "checkpoint.interval=30m", "linger=2ms", "autoscale.policy=dhalion"]) == 0
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("checkpoint.interval", "1h", "30m", "linger", "5ms", "2ms", "autoscale.policy", "dhalion"))
    assert "autoscale.interval" not in shown


def test_command_says_why_a_setting_does_not_change(job, capsys):
    assert main(["reconfigure", "shop", "state.backend=lmdb", "linger=2ms"]) == 1
    assert "StateConfig(backend=...) can't change while the job runs" in " ".join(capsys.readouterr().err.split())
    assert job.reconfigure(linger="5ms") == []


def test_command_line_without_a_value_is_wrong(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["reconfigure", "shop", "linger"])
    assert ended.value.code == 2
    assert "'linger' is no setting: write NAME=VALUE" in capsys.readouterr().err
