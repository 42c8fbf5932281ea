"""The clock of a job: seconds since the epoch as this process saw them first, and evenly on from there, so that it never goes back."""

from __future__ import annotations

import time


class JobClock:
    """Called for the time now."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._epoch + time.monotonic()
