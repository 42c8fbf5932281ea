"""The scaling policies by the names that users give them. A policy is loaded when it is first asked for: a job has one, or none.

>>> named("ds2", min_change=2)
Ds2(activation_window=1, target_ratio=0.95, min_change=2, rollback_loss=0.1, rollback_looks=2, turn_change=0.1, skew_tolerance=1.1)
>>> own_settings(named("ds2", min_change=2))
{'min_change': 2}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from typing import Any

from ...balancer.outside_json import shown
from ...engine.errors import RequestError
from .base import ScalingPolicy

POLICIES = {
    "ds2": "ds2:Ds2",
    "dhalion": "dhalion:Dhalion",
    "threshold": "threshold:ThresholdPolicy",
    "queueing": "queueing:QueueingPolicy",
    "pid": "pid:PidPolicy",
    "latency": "latency:LatencyPolicy",
    "stela": "stela:Stela",
}
"""The module and the class of each, the default first."""


def named(name: str, /, **own: Any) -> ScalingPolicy[Any]:
    """Return the policy of that name, with these settings of its own.

    Raises RequestError for an unknown policy or setting, FlowError, naming the setting, for an impossible value.
    """
    if name not in POLICIES:
        raise RequestError(f"{name!r} is not a scaling policy: use one of {', '.join(POLICIES)}")
    module, _, class_name = POLICIES[name].partition(":")
    policy: type[ScalingPolicy[Any]] = getattr(import_module(f"{__package__}.{module}"), class_name)
    known = [field.name for field in fields(policy)]
    for setting in own:
        if setting not in known:
            raise RequestError(f"the scaling policy {name} has no setting {shown(setting)}: its own settings are {', '.join(known)}")
    return policy(**own)


def own_settings(policy: ScalingPolicy[Any]) -> Mapping[str, Any]:
    """Return the settings of a policy that are not defaults, as numbers and texts, for `named`."""
    changed = {field.name: getattr(policy, field.name) for field in fields(policy) if getattr(policy, field.name) != field.default}
    return {name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in changed.items()}
