"""Automatic scaling: which policy decides, how often, and within which bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ...engine.errors import FlowError
from ...engine.time.duration import Duration, seconds
from ..policies.controller import MODES, Mode
from ..policies.dataflow.settings import PolicySettings
from ..policies.registry import POLICIES
from .balance import OFF
from .checks import duration, whole

LATENCY_POLICIES = ("queueing", "pid", "latency")
"""The scaling policies that need a `latency_target`."""


@dataclass(frozen=True, slots=True)
class AutoscaleConfig:
    """Automatic scaling of a job's operators, off until a policy is named.

    `policy`: decides how many workers every operator has (ds2, dhalion, threshold, queueing, pid, latency, stela), `off` for
    none. The other settings have no effect alone: they hold for this policy, or for one that `job.autoscaler` switches on. It
    observes the job every `interval`, once nothing has moved for twice as long, and gives an operator `min_parallelism` to
    `max_parallelism` workers. `mode`: "act", or "advise" to only record its decisions (`job.decisions()`). `latency_target`:
    source to sink, for the policies that need it (queueing, pid, latency). `settings`: further settings of the policies
    (`PolicySettings`), by name: {"max_change": 2, "catch_up_s": 60}. Set an operator's own bounds in the flow:
    `stream.parallelism(2, between=(1, 4))`, `stream.parallelism(fixed=True)`.

    >>> AutoscaleConfig("ds2", max_parallelism=8).policy_settings().max_parallelism
    8
    """

    policy: str = OFF
    mode: Mode = "act"
    interval: Duration = "10s"
    min_parallelism: int = 1
    max_parallelism: int = 16
    latency_target: Duration | None = None
    settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        whole(self, 1, "min_parallelism", "max_parallelism")
        duration(self, "interval", "latency_target", longer_than_zero=True)
        if self.max_parallelism < self.min_parallelism:
            bounds = f"max_parallelism is {self.max_parallelism}, below min_parallelism, which is {self.min_parallelism}"
            raise FlowError(f"AutoscaleConfig: {bounds}")
        self.policy_settings()
        if (problem := self.problem(self.policy, self.mode)) is not None:
            raise FlowError(f"AutoscaleConfig: {problem}")

    def problem(self, policy: str, mode: str) -> str | None:
        """Return the reason why a job with these settings can't be scaled by `policy` in this mode; None if it can, or the policy
        is `off`.
        """
        if mode not in MODES:
            return f"mode is {mode!r}; expected one of {', '.join(MODES)}"
        if policy != OFF and policy not in POLICIES:
            return f"{policy!r} can't scale a job: use {', '.join((*POLICIES, OFF))}"
        if policy in LATENCY_POLICIES and self.latency_target is None:
            return (
                f'the scaling policy {policy} keeps a latency: say which, for example AutoscaleConfig("{policy}", latency_target="200ms")'
            )
        return None

    def policy_settings(self) -> PolicySettings:
        """Return the settings for a scaling policy."""
        interval = seconds(self.interval)
        target = None if self.latency_target is None else seconds(self.latency_target) * 1000.0
        own: dict[str, Any] = {
            "interval_s": interval,
            "warm_up_s": interval,
            "min_parallelism": self.min_parallelism,
            "max_parallelism": self.max_parallelism,
            "latency_target_ms": target,
        }
        others = dict(self.settings or {})
        free = [field.name for field in fields(PolicySettings) if field.name not in own]
        for name in others:
            if name not in free:
                raise FlowError(f"AutoscaleConfig: settings has no {name!r}; expected some of {', '.join(free)}")
        return PolicySettings(**own, **others)
