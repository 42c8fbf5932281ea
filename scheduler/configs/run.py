"""Settings that a worker needs: network, measurements and state; a worker's process doesn't load the others."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from os import PathLike

from ...engine.errors import FlowError
from ...engine.time.duration import Duration
from ...state.backends.settings import MEMORY, StateSettings
from ..checks import duration, flag, given, refusal, whole

LOOPBACK = "127.0.0.1"
PATHS = ("certificate", "key", "discovery")
"""The settings of metrics that are paths."""

_TOKEN = re.compile(r"[!-~]+")


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
    """Load per worker, key group and hot key, and the endpoint for Prometheus.

    `enabled`: measure load per `window`; False leaves only the record counts. `latency_interval`: time between two latency marks
    that a source sends to the sinks. `samples`: send the coordinator some of the rejected or late records, as text, so that the
    page can show them; they cross the network in Ray's messages.

    `host`: the address of the coordinator's node at which Prometheus reads: by default only from that node, "0.0.0.0" or "::"
    from everywhere. `port`: 0 for any free port. If it can't be used, the job takes a free one, and reports that in its log and
    in `job.status().problems`; `job.metrics_url` has the address. `token`: Prometheus must send it as a bearer token.
    `certificate`, `key`: files in PEM on the coordinator's node, by which the endpoint speaks TLS; they are read again when they
    change. `key` may be in the file of the certificate. `discovery`: a folder that Prometheus reads (`file_sd_configs`); the
    coordinator keeps a file JOB.json in it that has the endpoint, until the job has finished or was cancelled.

    >>> config = MetricsConfig(window="500ms", host="0.0.0.0", port=9400, token="secret")
    >>> config.port, "secret" in repr(config)
    (9400, False)
    """

    enabled: bool = True
    window: Duration = "1s"
    latency_interval: Duration = "100ms"
    port: int = 0
    samples: bool = True
    host: str = LOOPBACK
    token: str | None = field(default=None, repr=False)
    certificate: str | None = None
    key: str | None = None
    discovery: str | None = None

    def __post_init__(self) -> None:
        flag(self, "enabled", "samples")
        duration(self, "window", "latency_interval", longer_than_zero=True)
        whole(self, 0, "port", most=65_535)
        if not isinstance(self.host, str) or not self.host.strip():
            raise refusal(self, "host", "an address or the name of a host")
        if self.token is not None and not (isinstance(self.token, str) and _TOKEN.fullmatch(self.token)):
            raise FlowError("MetricsConfig: token is not what a header can carry; expected letters, digits and punctuation, no spaces")
        for name in given(self, *PATHS):
            path = getattr(self, name)
            if not isinstance(path, (str, PathLike)) or not str(path) or "://" in str(path):
                raise refusal(self, name, "a path, because Prometheus and TLS read files")
        if self.key is not None and self.certificate is None:
            raise FlowError("MetricsConfig: key needs certificate=, the file of its certificate")


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
    """Settings of a worker's run. `store_url`: the folder of the job's checkpoints, None if they hold no state. `log_level`: None for
    that of its process.
    """

    network: NetworkConfig
    metrics: MetricsConfig
    store_url: str | None
    log_level: str | None = None
