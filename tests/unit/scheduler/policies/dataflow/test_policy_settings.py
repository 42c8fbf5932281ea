"""Settings of scaling that can't work are refused when they are made."""

from __future__ import annotations

import math
import pickle
from dataclasses import fields
from datetime import timedelta

import pytest

from evenflow.engine.errors import FlowError, RequestError
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dhalion import Dhalion
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.policies.latency import LatencyPolicy
from evenflow.scheduler.policies.pid import PidPolicy
from evenflow.scheduler.policies.queueing import QueueingPolicy
from evenflow.scheduler.policies.registry import POLICIES, named, own_settings
from evenflow.scheduler.policies.stela import Stela
from evenflow.scheduler.policies.threshold import ThresholdPolicy


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_parallelism": 0}, "min_parallelism is 0; expected a whole number of at least 1"),
        ({"min_parallelism": 8, "max_parallelism": 4}, "max_parallelism is 4, below min_parallelism, which is 8"),
        ({"max_change": True}, "max_change is True; expected a whole number"),
        ({"latency_target_ms": 0}, "latency_target_ms is 0; expected a number from 1e-09"),
        ({"interval_s": math.nan}, "interval_s is nan; expected a number"),
        ({"catch_up_s": -1}, "catch_up_s is -1; expected a number"),
        ({"warm_up_s": None}, "warm_up_s is None; expected a number from 0"),
    ],
)
def test_setting_that_cannot_work_is_refused_by_name(settings, message):
    with pytest.raises(FlowError) as error:
        PolicySettings(**settings)
    assert f"PolicySettings: {message}" in str(error.value)


def test_bounds_may_be_open():
    assert PolicySettings(max_parallelism=None, max_change=None).max_parallelism is None


WHOLE = {
    Ds2: ("activation_window", "min_change", "rollback_looks"),
    QueueingPolicy: ("processors",),
    LatencyPolicy: ("violations", "slowest", "window_step"),
    Stela: ("slots", "add_nodes", "remove_nodes"),
}
SHARES = {
    Ds2: ("target_ratio", "rollback_loss", "turn_change"),
    Dhalion: ("scale_down_factor",),
    ThresholdPolicy: ("target_utilisation", "utilisation_band", "least_effect"),
    LatencyPolicy: ("cluster_load",),
}
POSITIVE = {Ds2: ("skew_tolerance",), ThresholdPolicy: ("target_utilisation",), Stela: ("congestion",)}
DURATIONS = {Dhalion: ("blacklist",), ThresholdPolicy: ("scale_down_delay",)}
GAINS = {PidPolicy: ("proportional", "integral", "derivative", "band")}

IMPOSSIBLE = [
    (kind, name, value)
    for settings, values in (
        (WHOLE, (-1, 1.5, True, "many")),
        (SHARES, (-0.1, 1.2, math.nan, "half", None)),
        (POSITIVE, (0, math.inf, None)),
        (DURATIONS, ("soon", -1, None, math.nan)),
        (GAINS, (-1, 1e300, "x", None)),
    )
    for kind, names in settings.items()
    for name in names
    for value in values
]


@pytest.mark.parametrize(("kind", "name", "value"), IMPOSSIBLE)
def test_policy_refuses_its_impossible_values_by_name(kind, name, value):
    with pytest.raises(FlowError, match=f"{kind.__name__}: {name} "):
        kind(**{name: value})


def test_every_setting_of_every_policy_has_impossible_values():
    tried = {(kind, name) for kind, name, _ in IMPOSSIBLE}
    assert tried == {(type(named(policy)), name) for policy in POLICIES for name in (field.name for field in fields(named(policy)))}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"remove_nodes": 2}, "remove_nodes is 2; expected a whole number from 0 to 1"),
        ({"remove_nodes": 1, "slots": 2}, "scale in or out, not both"),
        ({"remove_nodes": 1, "add_nodes": 1}, "scale in or out, not both"),
    ],
)
def test_stela_removes_one_node_at_a_time_and_adds_none_meanwhile(own, message):
    with pytest.raises(FlowError, match=message):
        Stela(**own)


def test_unknown_setting_is_refused_with_the_names_of_the_policys_own():
    with pytest.raises(
        RequestError, match="scaling policy dhalion has no setting 'slots': its own settings are scale_down_factor, blacklist"
    ):
        named("dhalion", slots=1)
    with pytest.raises(RequestError, match="has no setting 'name'"):
        named("ds2", name="x")


@pytest.mark.parametrize(
    "policy",
    [Ds2(min_change=2), Dhalion(blacklist=timedelta(minutes=5)), ThresholdPolicy(scale_down_delay="5m"), Stela(slots=0), PidPolicy()],
)
def test_own_settings_are_numbers_and_texts_that_make_the_same_policy(policy):
    own = own_settings(policy)
    assert all(isinstance(value, (int, float, str)) for value in own.values())
    assert own_settings(named(policy.name, **own)) == own
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_policy_without_patience_has_its_other_settings():
    assert Ds2(activation_window=5, min_change=2).at_once() == Ds2(min_change=2)
    assert ThresholdPolicy(scale_down_delay="1h", least_effect=0).at_once() == ThresholdPolicy(scale_down_delay=0, least_effect=0)
    assert LatencyPolicy(violations=9).at_once() == LatencyPolicy(violations=1)
    assert Dhalion().at_once() == Dhalion()
