"""The clock of this machine, as a port of tasks."""

from __future__ import annotations

import time


class SystemClock:
    """`now`: the monotonic clock, in seconds. `timestamp`: the wall clock, in nanoseconds."""

    now = staticmethod(time.monotonic)
    timestamp = staticmethod(time.time_ns)
