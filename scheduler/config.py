"""The settings of a job, with defaults that work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

from ..balancer.policies import POLICIES
from ..balancer.strategies import STRATEGIES
from ..balancer.two_choices import TwoChoices
from ..engine.errors import FlowError
from ..engine.plan.task_spec import TaskSettings
from ..engine.time.duration import Duration, seconds
from ..state.backends.settings import MEMORY, StateSettings
from .job_settings import JobSettings
from .placement import SPREAD
from .placement import STRATEGIES as PLACEMENTS
from .restarts import RestartSettings
from .scaling.controller import MODES, Mode
from .scaling.policies import POLICIES as SCALING
from .scaling.settings import PolicySettings

OFF = "off"
"""In place of a balancer's or a scaling policy's name."""

AUTOMATIC = tuple(name for name in POLICIES if name != TwoChoices.name)
"""The balancers that a job can use: `two_choices` splits keys, which no routing table can say."""

LIVE = tuple(name for name in STRATEGIES if name != "restart")
"""The strategies that move keys while the stream runs."""

LATENCY_POLICIES = ("queueing", "pid", "latency")
"""The scaling policies that need a `latency_target`."""

LEAST_THRESHOLD = 1.05
"""The smallest `balance_threshold`: below it a plan would be asked for what the last one left."""

_LONGER_THAN_ZERO = (
    "checkpoint_interval", "checkpoint_timeout", "heartbeat_timeout", "metrics_window", "latency_interval", "start_timeout",
    "autoscaler_interval", "latency_target",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobConfig:
    """How a job runs.

    `parallelism`: workers per operator that doesn't say otherwise. `checkpoint_interval`: how often the sinks commit, None for
    once at the end. `batch_rows`: rows at which a batch leaves; `linger`: how long a row may wait for that. `key_groups`: a power of
    two, fixed for the job's life. `credit_batches`, `credit_bytes`: what a channel may have under way. `combine`: pre-combine
    aggregates before the shuffle. `metrics`: measure load per window of `metrics_window`; False leaves only the record counts.
    `migration_strategy`: how keyed state moves unless a call says otherwise: sudden, fluid, batched, pause or lazy. `balance_windows`: how
    many of the newest windows a balance plan on request looks at. `metrics_port`: where Prometheus reads, 0 for any free port.
    `start_timeout`: how long workers may take to start. `worker_cpus`: CPUs that Ray sets aside for each worker. `warm_spares`: started
    processes without a task, kept ready for whoever needs a worker, each with `worker_cpus`. `placement`: on which nodes workers go,
    "spread" (where the fewest are) or "pack" (on as few as have slots for them).

    Recovery: with `checkpoint_dir` (a folder that all workers reach, or a URL that fsspec opens) checkpoints hold the whole state, and a
    job that loses a worker goes back to its last one. `checkpoints_kept`: complete ones that stay, beside those that a damaged file would
    leave. `checkpoint_pause`: least time between two, `checkpoint_timeout`: after which one is given up,
    `tolerable_checkpoint_failures`: in a row, one more ends the job. `restart`: exponential, fixed or none; it waits `restart_delay`
    (exponential: doubled each time), gives up after `restart_most` in a row, and begins to count anew after `restart_quiet`.
    `heartbeat_timeout`: how long a worker's process may be silent. `allow_duplicates`: go on from an older checkpoint than the newest,
    whose files are damaged, also if a sink can't take back what it has committed since.

    State: `state_backend` says where the state of all keyed operators lies: "memory", "lmdb" (in files below `state_dir`, None for the
    system's temporary folder: larger than memory), or a server, "redis://127.0.0.1:6379/0".

    Automatic balancing: `balancer` plans for every operator with keyed state, `off` for none (`job.balancer` changes it for one). It acts
    when the hottest worker has had `balance_threshold` times the least possible for `balance_after`, then not for `balance_cooldown`; what
    moved stays for `balance_rest` unless its load shifts. `balance_least_busy`: the part of its time that the hottest worker must be busy
    for anything to be moved. `balance_max_bytes`: most state that one plan moves.

    Automatic scaling: `autoscaler` is the policy that decides how many workers every operator has (ds2, dhalion, threshold, queueing, pid,
    latency, stela), `off` for none (`job.autoscaler` changes it). It looks at the job every `autoscaler_interval`, once nothing has moved
    for twice as long, and gives an operator `min_parallelism` to `max_parallelism` workers. `autoscaler_mode`: "act", or "advise" to only
    record what it would do (`job.decisions()`). `latency_target`: source to sink, for the policies that need it (queueing, pid, latency).
    `autoscaler_settings`: what else the policies can be told (`PolicySettings`), by name: {"max_change": 2, "catch_up_s": 60}. An
    operator's own bounds are given where it is: `stream.parallelism(2, between=(1, 4))`, `stream.parallelism(fixed=True)`.

    >>> JobConfig(parallelism=2, checkpoint_interval="10s").parallelism
    2
    """

    parallelism: int = 1
    checkpoint_interval: Duration | None = "10s"
    checkpoint_dir: str | None = None
    checkpoint_timeout: Duration = "10m"
    checkpoint_pause: Duration = 0
    checkpoints_kept: int = 3
    tolerable_checkpoint_failures: int = 3
    restart: str = "exponential"
    restart_delay: Duration = "100ms"
    restart_most: int = 10
    restart_quiet: Duration = "1m"
    allow_duplicates: bool = False
    heartbeat_timeout: Duration = "30s"
    state_backend: str = MEMORY
    state_dir: str | None = None
    batch_rows: int = 32_768
    source_rows: int = 131_072
    linger: Duration = "5ms"
    key_groups: int = 1024
    credit_batches: int = 16
    credit_bytes: int = 64 * 1024 * 1024
    combine: bool = True
    metrics: bool = True
    metrics_window: Duration = "1s"
    latency_interval: Duration = "100ms"
    metrics_port: int = 0
    migration_strategy: str = "batched"
    balance_windows: int = 5
    balancer: str = "off"
    balance_threshold: float = 1.2
    balance_after: Duration = "3s"
    balance_cooldown: Duration = "3s"
    balance_rest: Duration = "10s"
    balance_least_busy: float = 0.05
    balance_max_bytes: int | None = None
    autoscaler: str = "off"
    autoscaler_mode: Mode = "act"
    autoscaler_interval: Duration = "10s"
    min_parallelism: int = 1
    max_parallelism: int = 16
    latency_target: Duration | None = None
    autoscaler_settings: Mapping[str, Any] | None = None
    start_timeout: Duration = "60s"
    worker_cpus: float = 0.0
    warm_spares: int = 0
    placement: str = SPREAD

    def __post_init__(self) -> None:
        for name in (
            "parallelism",
            "batch_rows",
            "source_rows",
            "key_groups",
            "credit_batches",
            "credit_bytes",
            "balance_windows",
            "checkpoints_kept",
            "min_parallelism",
            "max_parallelism",
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise FlowError(f"JobConfig: {name} is {value!r}; expected a whole number of at least 1")
        if self.key_groups & (self.key_groups - 1) or self.key_groups > 32_768:
            raise FlowError(f"JobConfig: key_groups is {self.key_groups}; expected a power of two up to 32768")
        for name in (
            *_LONGER_THAN_ZERO,
            "linger",
            "checkpoint_pause",
            "restart_delay",
            "restart_quiet",
            "balance_after",
            "balance_cooldown",
            "balance_rest",
        ):
            value = getattr(self, name)
            if value is not None and seconds(value, f"JobConfig: {name}") == 0 and name in _LONGER_THAN_ZERO:
                raise FlowError(f"JobConfig: {name} must be longer than zero")
        self._check_numbers()
        self._check_placement()
        _check_strategy(self.migration_strategy, self.checkpoint_dir)
        check_balancer(self.balancer)
        self.check_autoscaler(self.autoscaler, self.autoscaler_mode)
        self._check_state()
        self.job_settings()
        if not self.balance_threshold >= LEAST_THRESHOLD:
            raise FlowError(f"JobConfig: balance_threshold is {self.balance_threshold!r}; expected a factor of at least {LEAST_THRESHOLD}")
        if not 0 <= self.balance_least_busy <= 1:
            raise FlowError(f"JobConfig: balance_least_busy is {self.balance_least_busy!r}; expected a part of a worker's time, 0 to 1")
        if self.balance_max_bytes is not None and self.balance_max_bytes < 0:
            raise FlowError(f"JobConfig: balance_max_bytes is {self.balance_max_bytes!r}; expected 0 or more, or None for any number")

    def check_autoscaler(self, policy: str, mode: str) -> None:
        """Raises FlowError unless these settings allow for the scaling policy, or `off`, in this mode."""
        if mode not in MODES:
            raise FlowError(f"JobConfig: autoscaler_mode is {mode!r}; expected one of {', '.join(MODES)}")
        if self.max_parallelism < self.min_parallelism:
            raise FlowError(f"JobConfig: max_parallelism is {self.max_parallelism}, below min_parallelism, which is {self.min_parallelism}")
        self.policy_settings()
        if policy == OFF:
            return
        if policy not in SCALING:
            raise FlowError(f"{policy!r} can't scale a job: use {', '.join((*SCALING, OFF))}")
        if policy in LATENCY_POLICIES and self.latency_target is None:
            raise FlowError(f'the scaling policy {policy} keeps a latency: say which, for example JobConfig(latency_target="200ms")')
        if not self.metrics:
            raise FlowError(f"the scaling policy {policy} decides by what the workers measure: leave JobConfig(metrics=True)")

    def policy_settings(self) -> PolicySettings:
        """What a scaling policy needs of it."""
        interval = seconds(self.autoscaler_interval)
        target = None if self.latency_target is None else seconds(self.latency_target) * 1000.0
        own: dict[str, Any] = {
            "interval_s": interval,
            "warm_up_s": interval,
            "min_parallelism": self.min_parallelism,
            "max_parallelism": self.max_parallelism,
            "latency_target_ms": target,
        }
        others = dict(self.autoscaler_settings or {})
        free = [field.name for field in fields(PolicySettings) if field.name not in own]
        for name in others:
            if name not in free:
                raise FlowError(f"JobConfig: autoscaler_settings has no {name!r}; expected some of {', '.join(free)}")
        return PolicySettings(**own, **others)

    def _check_numbers(self) -> None:
        """Those with bounds of their own, and what is True or False."""
        for name, most in {"restart_most": None, "tolerable_checkpoint_failures": None, "metrics_port": 65_535}.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0 or (most is not None and value > most):
                bounds = "of at least 0" if most is None else f"from 0 to {most}"
                raise FlowError(f"JobConfig: {name} is {value!r}; expected a whole number {bounds}")
        for name in ("balance_threshold", "balance_least_busy", "worker_cpus"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise FlowError(f"JobConfig: {name} is {value!r}; expected a number")
        if self.balance_max_bytes is not None and (not isinstance(self.balance_max_bytes, int) or isinstance(self.balance_max_bytes, bool)):
            raise FlowError(f"JobConfig: balance_max_bytes is {self.balance_max_bytes!r}; expected 0 or more, or None for any number")
        for name in ("combine", "metrics", "allow_duplicates"):
            if not isinstance(getattr(self, name), bool):
                raise FlowError(f"JobConfig: {name} is {getattr(self, name)!r}; expected True or False")
        if self.checkpoint_dir is not None and (not isinstance(self.checkpoint_dir, (str, PathLike)) or not str(self.checkpoint_dir)):
            raise FlowError(f"JobConfig: checkpoint_dir is {self.checkpoint_dir!r}; expected a folder or a URL, or None")

    def _check_placement(self) -> None:
        if not isinstance(self.warm_spares, int) or isinstance(self.warm_spares, bool) or self.warm_spares < 0:
            raise FlowError(f"JobConfig: warm_spares is {self.warm_spares!r}; expected a whole number of at least 0")
        if not self.worker_cpus >= 0:
            raise FlowError(f"JobConfig: worker_cpus is {self.worker_cpus!r}; expected CPUs of at least 0")
        if self.placement not in PLACEMENTS:
            raise FlowError(f"JobConfig: placement is {self.placement!r}; expected one of {', '.join(PLACEMENTS)}")

    def _check_state(self) -> None:
        try:
            StateSettings(self.state_backend).check()
        except ValueError as error:
            raise FlowError(f"JobConfig: {error}") from error

    def task_settings(self) -> TaskSettings:
        """What the workers' tasks need of it."""
        save_state = self.checkpoint_dir is not None
        state = StateSettings(self.state_backend, self.state_dir)
        return TaskSettings(self.batch_rows, seconds(self.linger), self.key_groups, self.metrics, save_state, state)

    def checkpoint_url(self, job: str) -> str | None:
        """Where the job's checkpoints lie."""
        return None if self.checkpoint_dir is None else f"{str(self.checkpoint_dir).rstrip('/')}/{job}"

    def job_settings(self) -> JobSettings:
        """What the job's state machine needs of it."""
        interval = self.checkpoint_interval
        return JobSettings(
            None if interval is None else seconds(interval),
            seconds(self.checkpoint_timeout),
            seconds(self.checkpoint_pause),
            self.tolerable_checkpoint_failures,
            self.checkpoint_dir is not None,
            RestartSettings(self.restart, seconds(self.restart_delay), self.restart_most, seconds(self.restart_quiet)),
        )


def _check_strategy(name: str, checkpoint_dir: str | None) -> None:
    if name not in STRATEGIES:
        raise FlowError(f"JobConfig: migration_strategy is {name!r}; expected one of {', '.join(STRATEGIES)}")
    if name not in LIVE and checkpoint_dir is None:
        raise FlowError(f"JobConfig: migration_strategy {name!r} goes through a savepoint: it needs checkpoint_dir")


def check_balancer(name: str) -> str:
    """The name itself. Raises FlowError unless it is `off` or a balancer that a job can use."""
    if name != OFF and name not in AUTOMATIC:
        raise FlowError(f"{name!r} can't balance a job: use {', '.join((*AUTOMATIC, OFF))}")
    return name
