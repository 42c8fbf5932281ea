"""The groups of settings that a worker needs; a worker's process doesn't load the others."""

from __future__ import annotations

from dataclasses import dataclass

from .metrics import MetricsConfig
from .network import NetworkConfig


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Settings of a worker's run. `store_url`: the folder of the job's checkpoints, None if they hold no state."""

    network: NetworkConfig
    metrics: MetricsConfig
    store_url: str | None
