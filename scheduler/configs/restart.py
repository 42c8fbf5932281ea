"""The restart strategy of a job."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.time.duration import Duration, seconds
from ..checks import choice, duration, whole

STRATEGIES = ("exponential", "fixed", "none")


@dataclass(frozen=True, slots=True)
class RestartConfig:
    """The reaction to failures of a job with a checkpoint folder.

    `strategy`: exponential, fixed or none. The job waits `delay` (exponential: doubled each time, up to a minute), and gives up
    after `most` restarts in a row. A row ends when `quiet` has passed without a failure and a checkpoint was completed since the
    last restart; if the checkpoints have no interval, when the workers ran. An error that would recur, such as a folder without
    write permission or a missing module, ends the job at once. Each restart is a line in the log, and `job.status()` shows the
    error, the count and the next try.

    >>> RestartConfig("fixed", delay="1s", most=3).delay_s
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

    @property
    def delay_s(self) -> float:
        """The delay before the first restart, in seconds."""
        return seconds(self.delay)

    @property
    def quiet_s(self) -> float:
        """The time without a failure after which a row of restarts ends, in seconds."""
        return seconds(self.quiet)
