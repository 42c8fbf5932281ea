"""The settings of a job, with defaults that work.

Invariant: a `JobConfig` that exists can run; wrong settings are rejected by name, before anything starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from ...balancer.strategies import STRATEGIES
from ...engine.errors import FlowError
from ...engine.plan.task_spec import TaskSettings
from ...engine.time.duration import seconds
from ..checks import choice, flag, given, refusal, whole
from ..policies.base import ScalingPolicy
from .autoscale import AutoscaleConfig
from .balance import OFF, BalanceConfig, Preset
from .checkpoint import CheckpointConfig
from .restart import RestartConfig
from .run import MetricsConfig, NetworkConfig, RunConfig, StateConfig
from .worker import WorkerConfig

LIVE = tuple(name for name in STRATEGIES if name != "restart")
"""The strategies that move keys while the stream runs."""

MOST_KEY_GROUPS = 32_768

LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class JobConfig:
    """The settings of a job: a few numbers, and a group of settings for each of its activities.

    `parallelism`: default number of workers per operator. `key_groups`: a power of two, fixed while the job runs. `combine`:
    pre-combine aggregates before the shuffle. `migration_strategy`: default way to move keyed state: sudden, fluid, batched,
    pause or lazy. `log_level`: of the root logger in the job's processes, debug, info, warning or error; None leaves it as it is.
    Each group `x` is an `ef.XConfig`, whose documentation has its settings:

    >>> import evenflow as ef
    >>> config = ef.JobConfig(
    ...     parallelism=4,
    ...     checkpoint=ef.CheckpointConfig("/shared/checkpoints", interval="30s"),
    ...     state=ef.StateConfig("lmdb"),
    ...     restart=ef.RestartConfig("fixed", delay="1s"),
    ...     balance=ef.BalanceConfig(threshold=1.5),
    ...     autoscale=ef.AutoscaleConfig("ds2", mode="act", max_parallelism=8),
    ...     metrics=ef.MetricsConfig(window="500ms"),
    ...     network=ef.NetworkConfig(linger="1ms"),
    ...     worker=ef.WorkerConfig(cpus=0.5),
    ... )
    >>> config.checkpoint.interval
    '30s'
    """

    parallelism: int = 1
    key_groups: int = 1024
    combine: bool = True
    migration_strategy: str = "batched"
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    state: StateConfig = field(default_factory=StateConfig)
    restart: RestartConfig = field(default_factory=RestartConfig)
    balance: BalanceConfig = field(default_factory=BalanceConfig)
    autoscale: AutoscaleConfig = field(default_factory=AutoscaleConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    worker: WorkerConfig = field(default_factory=WorkerConfig)
    log_level: str | None = None

    def __post_init__(self) -> None:
        for group in fields(self):
            kind = group.default_factory
            if isinstance(kind, type) and not isinstance(getattr(self, group.name), kind):
                raise refusal(self, group.name, f"ef.{kind.__name__}(...)")
        whole(self, 1, "parallelism", "key_groups")
        if self.key_groups & (self.key_groups - 1) or self.key_groups > MOST_KEY_GROUPS:
            raise FlowError(f"JobConfig: key_groups is {self.key_groups}; expected a power of two up to {MOST_KEY_GROUPS}")
        flag(self, "combine")
        choice(self, "migration_strategy", STRATEGIES)
        for name in given(self, "log_level"):
            choice(self, name, LOG_LEVELS)
        if self.migration_strategy not in LIVE and self.checkpoint.dir is None:
            missing = "goes through a checkpoint: it needs CheckpointConfig(dir=...)"
            raise FlowError(f"JobConfig: migration_strategy {self.migration_strategy!r} {missing}")
        if not self.metrics.enabled:
            self._refuse_unmeasured()

    @property
    def balancer(self) -> str:
        """The policy that balances the job's operators; `off` if the load isn't measured."""
        return self.balance.policy if self.metrics.enabled else OFF

    @property
    def scaling_policy(self) -> ScalingPolicy[Any] | None:
        """The policy that scales the job's operators; None if that is `off`, or the load isn't measured."""
        return self.autoscale.chosen(self.autoscale.policy) if self.metrics.enabled else None

    def _refuse_unmeasured(self) -> None:
        """Raise FlowError for a policy that the user has chosen: there are no measurements to decide by."""
        needed = "decides by what the workers measure: leave MetricsConfig(enabled=True)"
        scaling, balancer = self.autoscale.policy, self.balance.policy
        if (policy := self.autoscale.chosen(scaling)) is not None and (self.autoscale.mode == "act" or not isinstance(scaling, Preset)):
            raise FlowError(f"JobConfig: the scaling policy {policy.name} {needed}")
        if balancer != OFF and not isinstance(balancer, Preset):
            raise FlowError(f"JobConfig: the balancer {balancer} {needed}")

    def task_settings(self) -> TaskSettings:
        """Return the settings for the workers' tasks."""
        save_state, linger = self.checkpoint.dir is not None, seconds(self.network.linger)
        return TaskSettings(self.network.batch_rows, linger, self.key_groups, self.metrics.enabled, save_state, self.state.settings())

    def of_run(self, job: str) -> RunConfig:
        """Return the groups that the job's workers need: they serve no metrics, and need no token."""
        measured = replace(self.metrics, token=None, certificate=None, key=None, discovery=None)
        return RunConfig(self.network, measured, self.checkpoint.url(job), self.log_level)
