"""The restart strategy: when a failed job restarts from its last checkpoint, and after which delay. Pure; time is passed in.

`exponential`: 2 ** n times the first delay, up to a limit. `fixed`: the same delay every time. Both give up after `most` restarts
in a row, with the first cause. A row ends with a quiet time in which the job made progress. An error that another attempt would
meet again (`engine/hopeless.py`) ends the job at once.
"""

from __future__ import annotations

from ...engine.hopeless import hopeless
from ..configs.restart import RestartConfig

LONGEST = 60.0
"""Seconds that a delay grows to, if it isn't longer from the first."""


class Restarts:
    """Counts restarts in a row: `in_row`."""

    def __init__(self, config: RestartConfig) -> None:
        self.config = config
        self.in_row = 0
        self._last: float | None = None
        self.first_cause: Exception | None = None

    def delay(self, cause: Exception, now: float, *, progress: bool) -> float | None:
        """Return the seconds to wait before the restart, and count it; None if the job must not restart, as `ends` says.

        `progress`: the job has advanced since the last restart.
        """
        if progress and self._last is not None and now - self._last > self.config.quiet_s:
            self.in_row, self.first_cause = 0, None
        self.first_cause = self.first_cause or cause
        if self.ends(cause) is not None:
            return None
        factor = 2**self.in_row if self.config.strategy == "exponential" else 1
        self.in_row, self._last = self.in_row + 1, now
        return min(self.config.delay_s * factor, max(self.config.delay_s, LONGEST))

    def ends(self, cause: Exception) -> str | None:
        """Return why the job does not restart after this error; None if it does."""
        if self.config.strategy == "none":
            return 'RestartConfig("none") says so'
        if (remedy := hopeless(cause)) is not None:
            return f"another attempt would meet the same error: {remedy}"
        if self.in_row >= self.config.most:
            return f"RestartConfig(most={self.config.most}) allows for no more restarts in a row"
        return None
