"""Clocks for sources, so that a stream doesn't end before a test has done what it is about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def slow_until(happened: Callable[[], Any], speed: float = 0.01) -> Callable[[], float]:
    """Return a clock that runs at a part of its speed until `happened` returns something true."""
    passed, last = 0.0, time.monotonic()

    def clock() -> float:
        nonlocal passed, last
        now = time.monotonic()
        passed, last = passed + (now - last) * (1.0 if happened() else speed), now
        return passed

    return clock
