"""The settings of a worker's run; users give them as a `JobConfig`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunSettings:
    """`source_rows`: rows that a source reads at once. `credit_batches`, `credit_bytes`: what a channel may have under way.

    `metrics_window`, `latency_interval` in seconds. `samples`: figures tell some of the records that were left out. `store_url`: where
    checkpoints are written; None: they hold no state.
    """

    source_rows: int
    credit_batches: int
    credit_bytes: int
    metrics_window: float
    latency_interval: float
    samples: bool
    store_url: str | None
