"""The clocks of jobs and tasks, and a stopwatch."""

from __future__ import annotations

import time


class JobClock:
    """The clock of a job: seconds since the epoch when it was made, and monotonic from then on."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._epoch + time.monotonic()


class SystemClock:
    """The clock of this machine, as a port of tasks: `now` in monotonic seconds, `timestamp` in nanoseconds since the epoch."""

    now = staticmethod(time.monotonic)
    timestamp = staticmethod(time.time_ns)


class Stopwatch:
    """A stopwatch that adds up the time between starts and stops. A start while it runs, or a stop while it is stopped, has no effect."""

    def __init__(self) -> None:
        self._total = 0.0
        self._since: float | None = None

    def start(self) -> None:
        if self._since is None:
            self._since = time.monotonic()

    def stop(self) -> None:
        self._total = self.seconds
        self._since = None

    @property
    def seconds(self) -> float:
        """The seconds that it has run, including the present run."""
        return self._total + (0.0 if self._since is None else time.monotonic() - self._since)
