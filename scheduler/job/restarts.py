"""When a failed job starts again from its last checkpoint, and after how long: pure, time passed in.

`exponential`: 2 ** n times the first delay, up to a limit. `fixed`: the same delay every time. Both give up after `most` restarts in a row,
with the first cause. A row ends with a quiet time in which the job made progress. An error that another attempt would meet again
(`engine/hopeless.py`) ends the job at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.errors import FlowError
from ...engine.hopeless import hopeless

STRATEGIES = ("exponential", "fixed", "none")
LONGEST = 60.0
"""Seconds that a delay grows to, if it isn't longer from the first."""


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """`delay`: seconds before the first restart. `most`: restarts in a row. `quiet`: seconds after which one counts as the first again."""

    strategy: str = "exponential"
    delay: float = 0.1
    most: int = 10
    quiet: float = 60.0

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise FlowError(f"{self.strategy!r} is no restart strategy; expected one of {', '.join(STRATEGIES)}")


class Restarts:
    """Counts restarts in a row: `in_row`."""

    def __init__(self, settings: RestartSettings) -> None:
        self.settings = settings
        self.in_row = 0
        self._last: float | None = None
        self.first_cause: Exception | None = None

    def delay(self, cause: Exception, now: float, *, progress: bool) -> float | None:
        """Seconds to wait before the job starts again; None if it must not, as `ends` says. Counts it as done.

        `progress`: the job has got further since the last restart.
        """
        if progress and self._last is not None and now - self._last > self.settings.quiet:
            self.in_row, self.first_cause = 0, None
        self.first_cause = self.first_cause or cause
        if self.ends(cause) is not None:
            return None
        factor = 2**self.in_row if self.settings.strategy == "exponential" else 1
        self.in_row, self._last = self.in_row + 1, now
        return min(self.settings.delay * factor, max(self.settings.delay, LONGEST))

    def ends(self, cause: Exception) -> str | None:
        """Return why the job does not restart after this error; None if it does."""
        if self.settings.strategy == "none":
            return 'RestartConfig("none") says so'
        if (remedy := hopeless(cause)) is not None:
            return f"another attempt would meet the same error: {remedy}"
        if self.in_row >= self.settings.most:
            return f"RestartConfig(most={self.settings.most}) allows for no more restarts in a row"
        return None
