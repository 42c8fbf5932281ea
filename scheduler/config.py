"""The settings of a job, with defaults that work."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.duration import Duration, seconds
from ..engine.errors import FlowError
from ..engine.task import TaskSettings


@dataclass(frozen=True, slots=True)
class JobConfig:
    """How a job runs.

    `parallelism`: workers per operator that doesn't say otherwise. `checkpoint_interval`: how often the sinks commit, None for
    once at the end. `batch_rows`: rows at which a batch leaves; `linger`: how long a row may wait for that. `key_groups`: a power of
    two, fixed for the job's life. `credit_batches`, `credit_bytes`: what a channel may have under way. `combine`: pre-combine
    aggregates before the shuffle. `metrics`: measure load per window of `metrics_window`; False leaves only the record counts.
    `migration_strategy`: how keyed state moves unless a call says otherwise: sudden, fluid, batched, pause or lazy. `balance_windows`: how
    many of the newest windows a balance plan looks at. `metrics_port`: where Prometheus reads, 0 for any free port. `start_timeout`: how
    long workers may take to start. `worker_cpus`: CPUs that Ray sets aside for each worker.

    >>> JobConfig(parallelism=2, checkpoint_interval="10s").parallelism
    2
    """

    parallelism: int = 1
    checkpoint_interval: Duration | None = "10s"
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
    start_timeout: Duration = "60s"
    worker_cpus: float = 0.0

    def __post_init__(self) -> None:
        for name in ("parallelism", "batch_rows", "source_rows", "key_groups", "credit_batches", "credit_bytes", "balance_windows"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise FlowError(f"JobConfig: {name} is {value!r}; expected a whole number of at least 1")
        if self.key_groups & (self.key_groups - 1) or self.key_groups > 32_768:
            raise FlowError(f"JobConfig: key_groups is {self.key_groups}; expected a power of two up to 32768")
        for name in ("checkpoint_interval", "linger", "metrics_window", "latency_interval", "start_timeout"):
            value = getattr(self, name)
            if value is not None and seconds(value, f"JobConfig: {name}") == 0 and name != "linger":
                raise FlowError(f"JobConfig: {name} must be longer than zero")

    def task_settings(self) -> TaskSettings:
        """What the workers' tasks need of it."""
        return TaskSettings(self.batch_rows, seconds(self.linger), self.key_groups, self.metrics)
