"""What the workers measure, and where it can be read."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.time.duration import Duration
from .checks import duration, flag, whole


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Load per worker, key group and hot key.

    `enabled`: measure load per `window`; False leaves only the record counts. `latency_interval`: how often a source sends a mark whose way
    to the sinks is timed. `port`: where Prometheus reads, 0 for any free port. If it can't be used, the job takes a free one, and says so
    in its log and in `job.status().problems`; `job.metrics_url` has the address. `samples`: tell the coordinator some of the records that
    were refused or late, as text, so that the page can show them; they cross the network in Ray's messages.

    >>> MetricsConfig(window="500ms", port=9400).port
    9400
    """

    enabled: bool = True
    window: Duration = "1s"
    latency_interval: Duration = "100ms"
    port: int = 0
    samples: bool = True

    def __post_init__(self) -> None:
        flag(self, "enabled", "samples")
        duration(self, "window", "latency_interval", longer_than_zero=True)
        whole(self, 0, "port", most=65_535)
