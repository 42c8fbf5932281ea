"""The settings of a job's resources on Kubernetes, and what all of these share: names, labels and times.

The settings of a chart are placeholders (`placeholders.py`), so no module of this package computes with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..process_end import GRACE, LEAVE_SECONDS

METRICS_PORT = 9400
DASHBOARD_PORT = 8265

Kind = Literal["rayjob", "raycluster"]
"""The resource that runs the program: a RayJob, or a RayCluster and a Job."""

STOP_SECONDS = math.ceil(GRACE + LEAVE_SECONDS) + 5
"""Seconds that a program has to end after a SIGTERM: it stops its jobs, and cancels those that don't stop."""

TERMINATION_SECONDS = STOP_SECONDS + 30
"""The grace period of pods: a stop that another process asked for, and the end of Ray's own processes."""

MONITORING = ("PodMonitor", "PrometheusRule")
"""The kinds of the Prometheus operator."""

OPTIONAL = ("NetworkPolicy", "Service", *MONITORING)
"""The kinds without which a job runs too."""

Resource = dict[str, Any]


class Size(NamedTuple):
    """The processors and the memory of a pod, as Kubernetes' quantities."""

    cpus: Any
    memory: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A job on Kubernetes.

    `entrypoint`: the command of the program in the image. `checkpoint`: the folder of checkpoints. `workers`: the least and the most
    worker pods; `autoscaling`: True if they differ. `retries`: how often the program starts again after a failure that ended its
    process or its cluster. `env`, `env_from`: variables of all pods, with references to Secrets. `volumes`, `mounts`: volumes of
    all pods. `state_size`: the limit of each pod's disk for keyed state. `namespace`: None leaves it to kubectl.

    >>> size = Size("1", "2Gi")
    >>> job = Deployment(name="clicks", image="clicks:1", entrypoint="python clicks.py", checkpoint="s3://bucket/jobs",
    ...     workers=(2, 8), autoscaling=True, worker=size, head=size)
    >>> job.metadata("-metrics")["name"]
    'clicks-metrics'
    """

    name: str
    image: Any
    entrypoint: Any
    checkpoint: Any
    workers: tuple[Any, Any]
    autoscaling: Any
    worker: Size
    head: Size
    state_size: Any = "10Gi"
    namespace: str | None = None
    ray_version: Any = ""
    retries: Any = 100
    env: Sequence[Any] = ()
    env_from: Any = field(default_factory=list)
    volumes: Sequence[Any] = ()
    mounts: Sequence[Any] = ()
    metrics_port: int = METRICS_PORT
    monitoring_namespace: Any = "monitoring"
    monitoring_labels: Mapping[Any, Any] = field(default_factory=dict)
    account_annotations: Any = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all resources and pods, by which Services and policies find the pods."""
        return {"app.kubernetes.io/name": "evenflow", "app.kubernetes.io/instance": self.name}

    def metadata(self, suffix: str = "", more_labels: Mapping[Any, Any] | None = None) -> Resource:
        """Return the metadata of a resource whose name is the job's and `suffix`."""
        placed = {} if self.namespace is None else {"namespace": self.namespace}
        return {"name": f"{self.name}{suffix}", **placed, "labels": {**self.labels, **(more_labels or {})}}
