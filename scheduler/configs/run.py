"""Settings that a worker needs: network, measurements and state; a worker's process doesn't load the others."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.errors import FlowError
from ...engine.time.duration import Duration
from ...state.backends.settings import MEMORY, StateSettings
from ..checks import duration, flag, whole


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Batches and channels.

    `batch_rows`: rows at which a batch is sent; `linger`: longest time that a row waits for that, also in a slow source.
    `source_rows`: rows that a source reads at once. `credit_batches`, `credit_bytes`: most data in flight on a channel.

    >>> NetworkConfig(batch_rows=1_000, linger=0).linger
    0
    """

    batch_rows: int = 32_768
    linger: Duration = "5ms"
    source_rows: int = 262_144
    credit_batches: int = 16
    credit_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        whole(self, 1, "batch_rows", "source_rows", "credit_batches", "credit_bytes")
        duration(self, "linger")


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Load per worker, key group and hot key.

    `enabled`: measure load per `window`; False leaves only the record counts. `latency_interval`: time between two latency marks
    that a source sends to the sinks. `port`: where Prometheus reads, 0 for any free port. If it can't be used, the job takes a
    free one, and reports that in its log and in `job.status().problems`; `job.metrics_url` has the address. `samples`: send the
    coordinator some of the rejected or late records, as text, so that the page can show them; they cross the network in Ray's
    messages.

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


@dataclass(frozen=True, slots=True)
class StateConfig:
    """The storage of the state of all keyed operators.

    `backend`: "memory", "lmdb" (files below `dir`, None for the system's temporary folder: state may be larger than memory), or a
    server, "redis://127.0.0.1:6379/0".

    >>> StateConfig("lmdb", dir="/fast").backend
    'lmdb'
    """

    backend: str = MEMORY
    dir: str | None = None

    def __post_init__(self) -> None:
        try:
            self.settings().check()
        except ValueError as error:
            raise FlowError(f"StateConfig: {error}") from error

    def settings(self) -> StateSettings:
        """Return the settings for the backends."""
        return StateSettings(self.backend, self.dir)


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Settings of a worker's run. `store_url`: the folder of the job's checkpoints, None if they hold no state."""

    network: NetworkConfig
    metrics: MetricsConfig
    store_url: str | None
