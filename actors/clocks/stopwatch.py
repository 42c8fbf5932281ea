"""A stopwatch: adds up the time between starts and stops, the running one included."""

from __future__ import annotations

import time


class Stopwatch:
    """Starting a running one, or stopping a stopped one, changes nothing."""

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
        """Seconds it has run so far."""
        return self._total + (0.0 if self._since is None else time.monotonic() - self._since)
