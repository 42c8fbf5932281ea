"""The clocks of jobs and tasks, and a stopwatch."""

from __future__ import annotations

import time


class JobClock:
    """The clock of a job; calling it returns seconds since the epoch.

    It starts with the wall clock of this process and advances steadily from then on, so it never goes back.
    """

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._epoch + time.monotonic()


class SystemClock:
    """The clock of this machine, for tasks. `now`: monotonic, in seconds. `timestamp`: the wall clock, in nanoseconds."""

    now = staticmethod(time.monotonic)
    timestamp = staticmethod(time.time_ns)


class Stopwatch:
    """The sum of the times between starts and stops, including a running one.

    Starting a running stopwatch, or stopping a stopped one, changes nothing.
    """

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
        """The seconds that it has run so far."""
        return self._total + (0.0 if self._since is None else time.monotonic() - self._since)
