"""How a job goes on after a failure."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.time.duration import Duration, seconds
from ..job.restarts import STRATEGIES, RestartSettings
from .checks import choice, duration, whole


@dataclass(frozen=True, slots=True)
class RestartConfig:
    """What a job with a checkpoint folder does when it fails.

    `strategy`: exponential, fixed or none. It waits `delay` (exponential: doubled each time, up to a minute), and gives up after `most`
    restarts in a row. A row ends when `quiet` has passed without a failure and a checkpoint was completed since the last restart; where the
    checkpoints have no interval, when the workers ran. What another attempt would meet again, such as a folder that may not be written or a
    missing module, ends the job at once. Each restart is a line in the log, and `job.status()` shows the error, the count and the next try.

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
