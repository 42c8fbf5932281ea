"""When a failed job starts again from its last checkpoint, and after how long: pure, time passed in.

`exponential`: 2 ** n times the first delay, up to a limit, forgotten after a quiet time. `fixed`: the same delay every time. Both give
up after `most` restarts in a row, with the first cause. A record that a user's function refuses would be refused again: it ends the
job at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.errors import FlowError, RecordError

STRATEGIES = ("exponential", "fixed", "none")
LONGEST = 60.0
"""Seconds that a delay grows to."""


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
    """Counts restarts in a row."""

    def __init__(self, settings: RestartSettings) -> None:
        self.settings = settings
        self.total = 0
        self._in_row = 0
        self._last: float | None = None
        self.first_cause: Exception | None = None

    def delay(self, cause: Exception, now: float) -> float | None:
        """Seconds to wait before the job starts again; None if it must not. Counts it as done."""
        if self._last is not None and now - self._last > self.settings.quiet:
            self._in_row, self.first_cause = 0, None
        self.first_cause = self.first_cause or cause
        if self.settings.strategy == "none" or isinstance(cause, RecordError) or self._in_row >= self.settings.most:
            return None
        factor = 2**self._in_row if self.settings.strategy == "exponential" else 1
        self._in_row, self._last, self.total = self._in_row + 1, now, self.total + 1
        return min(self.settings.delay * factor, LONGEST)
