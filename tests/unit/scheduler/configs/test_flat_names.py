"""The flat settings of evenflow 0.1 mean what they meant, and say what they are called now."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import fields, is_dataclass, replace

import pytest

from evenflow.engine.errors import FlowError
from evenflow.scheduler.config import JobConfig
from evenflow.scheduler.configs.checkpoint import CheckpointConfig
from evenflow.scheduler.configs.flat_names import FLAT

LATER = {("balance", "split_hot_keys"), ("metrics", "samples"), ("worker", "keep")}
"""Settings that came after the flat names."""


def test_flat_name_warns_where_it_is_used_and_names_the_new_way():
    with pytest.warns(DeprecationWarning, match=r"JobConfig\(checkpoint_dir=...\) is checkpoint=CheckpointConfig\(dir=...\) now") as caught:
        config = JobConfig(checkpoint_dir="/saved")
    assert config == JobConfig(checkpoint=CheckpointConfig("/saved"))
    assert caught[0].filename == __file__


def test_every_setting_of_a_group_has_its_flat_name():
    groups = {group.name: getattr(JobConfig(), group.name) for group in fields(JobConfig)}
    settings = {(name, field.name) for name, group in groups.items() if is_dataclass(group) for field in fields(group)}
    assert {*FLAT.values(), ("restart", "strategy"), ("metrics", "enabled")} == settings - LATER


def test_names_that_are_groups_now_take_the_values_that_they_took():
    with pytest.warns(DeprecationWarning, match="restart=RestartConfig"):
        assert JobConfig(restart="fixed").restart.strategy == "fixed"
    with pytest.warns(DeprecationWarning, match="metrics=MetricsConfig"):
        assert JobConfig(metrics=False).metrics.enabled is False


def test_flat_names_change_the_group_beside_them():
    with pytest.warns(DeprecationWarning, match="checkpoint_interval"):
        config = JobConfig(checkpoint=CheckpointConfig("/saved"), checkpoint_interval="1s")
    assert config.checkpoint == CheckpointConfig("/saved", interval="1s")
    with pytest.warns(DeprecationWarning, match="checkpoints_kept"):
        assert replace(config, checkpoints_kept=7).checkpoint == CheckpointConfig("/saved", interval="1s", kept=7)


def test_wrong_value_of_a_flat_name_is_refused_as_in_its_group():
    with pytest.warns(DeprecationWarning, match="checkpoint_dir"), pytest.raises(FlowError, match="CheckpointConfig: dir is 5"):
        JobConfig(checkpoint_dir=5)


def test_unknown_name_is_refused_as_python_does():
    with pytest.raises(TypeError, match="checkpoint_folder"):
        JobConfig(checkpoint_folder="/saved")


def test_new_names_copies_and_pickles_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = replace(JobConfig(parallelism=2), checkpoint=CheckpointConfig("/saved"))
        assert pickle.loads(pickle.dumps(config)) == config
