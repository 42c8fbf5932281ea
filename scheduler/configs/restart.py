"""How a job goes on after a failure."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.time.duration import Duration, seconds
from ..job.restarts import STRATEGIES, RestartSettings
from .checks import choice, duration, whole


@dataclass(frozen=True, slots=True)
class RestartConfig:
    """What a job with a checkpoint folder does when it fails.

    `strategy`: exponential, fixed or none. It waits `delay` (exponential: doubled each time), gives up after `most` restarts in a row,
    and starts to count again from 0 after `quiet` without a failure.

    >>> RestartConfig("fixed", delay="1s", most=3).settings().delay
    1.0
    """

    strategy: str = "exponential"
    delay: Duration = "100ms"
    most: int = 10
    quiet: Duration = "1m"

    def __post_init__(self) -> None:
        choice(self, "strategy", STRATEGIES)
        duration(self, "delay", "quiet")
        whole(self, 0, "most")

    def settings(self) -> RestartSettings:
        """What counting restarts needs of it."""
        return RestartSettings(self.strategy, seconds(self.delay), self.most, seconds(self.quiet))
