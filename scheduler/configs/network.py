"""How rows travel between workers."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.time.duration import Duration
from .checks import duration, whole


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Batches and channels.

    `batch_rows`: rows at which a batch leaves; `linger`: how long a row may wait for that, also in a source that gives just a few at a
    time. `source_rows`: rows that a source reads at once. `credit_batches`, `credit_bytes`: what a channel may have under way.

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
