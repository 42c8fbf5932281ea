"""The clocks of jobs and tasks, and a stopwatch."""

from __future__ import annotations

import time
from collections.abc import Callable


class JobClock:
    """The clock of a job: seconds since the epoch when it was made by the clock `wall`, and `monotonic` from then on."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._epoch = wall() - monotonic()

    def __call__(self) -> float:
        return self._epoch + self.monotonic()


class SystemClock:
    """The clock of this machine, as a port of tasks: `now` in monotonic seconds, `timestamp` in nanoseconds since the epoch."""

    now = staticmethod(time.monotonic)
    timestamp = staticmethod(time.time_ns)


class Stopwatch:
    """A stopwatch that adds up the time between starts and stops. A start while it runs, or a stop while it is stopped, has no effect."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._total = now, 0.0
        self._since: float | None = None

    def start(self) -> None:
        if self._since is None:
            self._since = self._now()

    def stop(self) -> None:
        self._total = self.seconds
        self._since = None

    @property
    def seconds(self) -> float:
        """The seconds that it has run, including the present run."""
        return self._total + (0.0 if self._since is None else self._now() - self._since)
