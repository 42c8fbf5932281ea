"""The settings of the job's state machine; users give them as a `JobConfig`."""

from __future__ import annotations

from dataclasses import dataclass, field

from .restarts import RestartSettings


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Seconds. `checkpoint_interval` None: no checkpoints, one commit at the end. `checkpoint_pause`: least time between two.

    `save_state`: checkpoints hold the state, so that the job can go on from them. `tolerable_failures`: of checkpoints, in a row.
    """

    checkpoint_interval: float | None = None
    checkpoint_timeout: float = 600.0
    checkpoint_pause: float = 0.0
    tolerable_failures: int = 3
    save_state: bool = False
    restarts: RestartSettings = field(default_factory=RestartSettings)
