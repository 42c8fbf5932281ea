"""Deadlines of tests, which grow with how slow and how busy the machine is.

A test waits for an event, with a deadline that only a fault reaches. `EVENFLOW_TEST_PATIENCE` is the factor by which deadlines grow. If it
is not set, a run measures it when it begins: a fixed piece of work takes longer on a slow machine, and on a busy one processes wait
for their turn. Processes that the run starts inherit it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "EVENFLOW_TEST_PATIENCE"
QUIET_SECONDS = 0.07
"""Time that the work takes on the machine for which deadlines are written, when nothing else runs."""
STEPS = 1_500_000
MOST = 20.0
"""The largest factor. A longer measurement means that another program had the whole machine for a moment."""


def patience(seconds: float) -> float:
    """Return the deadline for an event that comes within `seconds` on a machine with two cores, even a busy one."""
    return seconds * FACTOR


def until(found: Callable[[], Any]) -> Any:
    """Return the first true value of `found`; fails after a minute."""
    deadline, pause = time.monotonic() + patience(60), threading.Event()
    while not (value := found()):
        assert time.monotonic() < deadline, "nothing was found within a minute on a quiet machine"
        pause.wait(0.02)
    return value


def measured() -> float:
    """Return how much longer an event may take than on a quiet machine, at least 1."""
    began = time.perf_counter()
    total = 0
    for step in range(STEPS):
        total ^= step
    slow = (time.perf_counter() - began) / QUIET_SECONDS
    return min(MOST, max(1.0, slow, waiting()))


def waiting() -> float:
    """Return the runnable processes per processor, now or on average in the last minute, whichever is more."""
    runnable = max(_running(), os.getloadavg()[0])
    return runnable / len(os.sched_getaffinity(0))


def _running() -> int:
    try:
        return int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
    except OSError:
        return 0


FACTOR = float(os.environ.get(VARIABLE) or measured())
os.environ[VARIABLE] = f"{FACTOR:.2f}"
