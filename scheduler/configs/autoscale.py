"""Automatic scaling: which policy decides, how often, and within which bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...balancer.outside_json import shown
from ...engine.errors import FlowError
from ...engine.time.duration import Duration, seconds
from ..checks import duration, given, whole
from ..policies.base import ScalingPolicy
from ..policies.controller import MODES, Mode
from ..policies.dataflow.settings import PolicySettings
from ..policies.registry import POLICIES, named
from .balance import OFF, Preset

DEFAULT_POLICY = Preset("ds2")


@dataclass(frozen=True, slots=True)
class AutoscaleConfig:
    """Automatic scaling of a job's operators: advice, carried out with `mode="act"`.

    `mode`: "advise" only records the policy's decisions (`job.decisions()`) and shows them (`job.status()`), "act" carries them
    out. `policy`: decides how many workers every operator has, `off` for none. It is a name (ds2, dhalion, threshold, queueing,
    pid, latency, stela), or a policy with settings of its own, such as `ef.Ds2(min_change=2)`. The other settings hold for this
    policy, and for one that `job.autoscaler` switches on. It observes the job every `interval`, once nothing has moved for twice
    as long, and gives an operator `min_parallelism` to `max_parallelism` workers, at most `max_change` more or fewer at a time
    (None: any number). `catch_up`: the time in which ds2 and threshold work a backlog off (None: a backlog is not part of the
    demand). `latency_target`: source to sink, for the policies that need it (queueing, pid, latency). Set an operator's own
    bounds in the flow: `stream.parallelism(2, between=(1, 4))`, `stream.parallelism(fixed=True)`.

    >>> import evenflow as ef
    >>> ef.AutoscaleConfig(ef.Ds2(min_change=2), max_change=2).policy.min_change
    2
    """

    policy: str | ScalingPolicy[Any] = DEFAULT_POLICY
    mode: Mode = "advise"
    interval: Duration = "10s"
    min_parallelism: int = 1
    max_parallelism: int = 16
    max_change: int | None = None
    catch_up: Duration | None = None
    latency_target: Duration | None = None

    def __post_init__(self) -> None:
        whole(self, 1, "min_parallelism", "max_parallelism", *given(self, "max_change"))
        duration(self, "interval", *given(self, "catch_up", "latency_target"), longer_than_zero=True)
        if self.max_parallelism < self.min_parallelism:
            bounds = f"max_parallelism is {self.max_parallelism}, below min_parallelism, which is {self.min_parallelism}"
            raise FlowError(f"AutoscaleConfig: {bounds}")
        if (problem := self.problem(self.policy, self.mode)) is not None:
            raise FlowError(f"AutoscaleConfig: {problem}")

    def chosen(self, policy: str | ScalingPolicy[Any]) -> ScalingPolicy[Any] | None:
        """Return the policy that a job with these settings is scaled by: a name is that of the configured policy, or of another one
        with its defaults. None for `off`. Raises RequestError for an unknown name.
        """
        if isinstance(policy, ScalingPolicy):
            return policy
        if isinstance(self.policy, ScalingPolicy) and self.policy.name == policy:
            return self.policy
        return None if policy == OFF else named(policy)

    def problem(self, policy: str | ScalingPolicy[Any], mode: str) -> str | None:
        """Return the reason why a job with these settings can't be scaled by `policy` in this mode; None if it can, or the policy
        is `off`.
        """
        if mode not in MODES:
            return f"mode is {mode!r}; expected one of {', '.join(MODES)}"
        if not isinstance(policy, (str, ScalingPolicy)):
            return f"policy is {shown(policy)}; expected a name, or a policy such as ef.Ds2()"
        if isinstance(policy, str) and policy not in (*POLICIES, OFF):
            return f"{policy!r} can't scale a job: use {', '.join((*POLICIES, OFF))}"
        chosen = self.chosen(policy)
        if chosen is not None and chosen.needs_latency and self.latency_target is None:
            example = f'AutoscaleConfig("{chosen.name}", latency_target="200ms")'
            return f"the scaling policy {chosen.name} keeps a latency: say which, for example {example}"
        return None

    def policy_settings(self) -> PolicySettings:
        """Return the settings that all scaling policies have in common."""
        interval = seconds(self.interval)
        return PolicySettings(
            interval_s=interval,
            warm_up_s=interval,
            min_parallelism=self.min_parallelism,
            max_parallelism=self.max_parallelism,
            max_change=self.max_change,
            latency_target_ms=None if self.latency_target is None else seconds(self.latency_target) * 1000.0,
            catch_up_s=None if self.catch_up is None else seconds(self.catch_up),
        )
