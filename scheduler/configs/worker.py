"""The processes in which a job's workers run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...engine.time.duration import Duration
from ..checks import choice, duration, given, number, refusal, whole
from ..policies.nodes.placement import SPREAD, STRATEGIES

NAMED_CLUSTER_CPUS = 1.0
"""CPUs that a worker reserves by default on a cluster that the user names."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Workers' processes on a Ray cluster.

    `cpus`: CPUs that Ray sets aside for each worker. None: 1 on a cluster that RAY_ADDRESS, `ray.init(address)` or `ray job submit`
    names, so that Ray's autoscaler sees what the job needs, else 0. `placement`: on which nodes workers go, "spread" (where the fewest
    are) or "pack" (on as few as have slots for them). `warm_spares`: started processes without a task, kept ready for new workers,
    each with `cpus`. None: one if the job has several workers and a checkpoint folder, and reserves no CPUs. `start_timeout`: how long
    workers may take to start. `heartbeat_timeout`: how long a worker's process may be silent. `keep`: how long processes without `cpus`
    wait, when their job is over, for the driver's next job; "0s": they don't, and the job has new ones.

    >>> WorkerConfig(cpus=0.5, placement="pack").reserved
    0.5
    """

    cpus: float | None = None
    placement: str = SPREAD
    warm_spares: int | None = None
    start_timeout: Duration = "60s"
    heartbeat_timeout: Duration = "30s"
    keep: Duration = "60s"

    def __post_init__(self) -> None:
        number(self, *given(self, "cpus"))
        if self.cpus is not None and not self.cpus >= 0:
            raise refusal(self, "cpus", "CPUs of at least 0")
        choice(self, "placement", STRATEGIES)
        whole(self, 0, *given(self, "warm_spares"))
        duration(self, "keep")
        duration(self, "start_timeout", "heartbeat_timeout", longer_than_zero=True)

    @property
    def reserved(self) -> float:
        """CPUs that Ray sets aside for each worker; 0 where `cpus` is None, which `on_cluster` decides."""
        return self.cpus or 0.0

    def spares_of(self, workers: int, *, restarts: bool) -> int:
        """Return how many spares a job of that many workers keeps. `restarts`: it has checkpoints to restart from.

        By default those that reserve nothing: no worker waits for their room, and Ray's autoscaler adds no node for them.

        >>> [WorkerConfig().spares_of(workers, restarts=True) for workers in (1, 2, 8)]
        [0, 1, 1]
        >>> WorkerConfig().spares_of(2, restarts=False), WorkerConfig(cpus=1).spares_of(2, restarts=True)
        (0, 0)
        """
        if self.warm_spares is not None:
            return self.warm_spares
        return int(workers > 1 and restarts and not self.reserved)

    def on_cluster(self, *, named: bool) -> WorkerConfig:
        """Decide `cpus` where it is None. `named`: the user names the cluster.

        >>> [config.on_cluster(named=True).cpus for config in (WorkerConfig(), WorkerConfig(cpus=2))]
        [1.0, 2]
        """
        return self if self.cpus is not None else replace(self, cpus=NAMED_CLUSTER_CPUS if named else 0.0)
