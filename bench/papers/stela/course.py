"""The course of a job around the order to add or remove a node: throughput before and after, time to converge, downtime.

Throughput counts the rows of all sinks. Times are seconds on one clock.

>>> rows = [0.1 * n for n in range(100)] + [15 + 0.05 * n for n in range(300)]
>>> measure(rows, ordered=10.0, ended=30.0, window=10.0)
Course(before=10.0, after=20.0, converged=4.5, downtime=5.1, longest_before=0.1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SMOOTH = 5.0
"""Seconds over which the throughput is averaged to see when it has converged."""

STEP = 0.25
"""Seconds between two of these averages."""

REACHED = 0.9
"""The part of the final throughput below which it has not converged."""


@dataclass(frozen=True, slots=True)
class Course:
    """Throughput `before` and `after`: rows/s over a window before the order, and over the last window of the run.

    `converged`: seconds from the order on after which the rate over the next `SMOOTH` seconds is never below `REACHED` of `after`. Stela's
    convergence time is the time until the mean throughput after scaling is reached. `downtime`: the longest time without a row from the
    order on; `longest_before`: the same in the window before it.
    """

    before: float
    after: float
    converged: float
    downtime: float
    longest_before: float


def measure(rows: Sequence[float], ordered: float, ended: float, window: float) -> Course:
    """Measure the course by the times of `rows` from `ordered` - `window` to `ended`, which is more than `window` after `ordered`."""
    times = np.sort(np.asarray(rows, np.float64))
    before, after = rate(times, ordered - window, ordered), rate(times, ended - window, ended)
    looks = np.arange(ordered, ended - SMOOTH + 1e-9, STEP)
    slow = [float(look) for look in looks if rate(times, look, look + SMOOTH) < REACHED * after]
    return Course(
        round(before, 3),
        round(after, 3),
        round(slow[-1] + STEP - ordered, 3) if slow else 0.0,
        round(longest_gap(times, ordered, ended), 3),
        round(longest_gap(times, ordered - window, ordered), 3),
    )


def rate(times: npt.NDArray[np.float64], begun: float, ended: float) -> float:
    """Return rows per second from `begun` to `ended`."""
    first, last = np.searchsorted(times, [begun, ended])
    return float(last - first) / (ended - begun)


def longest_gap(times: npt.NDArray[np.float64], begun: float, ended: float) -> float:
    """Return the longest time without a row from the last one before `begun` to `ended`."""
    first, last = np.searchsorted(times, [begun, ended])
    inside = times[max(0, first - 1) : last]
    return float(np.max(np.diff([*inside, ended]))) if len(inside) else ended - begun


def curve(rows: Sequence[float], ordered: float, begun: float, ended: float) -> list[tuple[float, float]]:
    """Return (seconds since the order, rows/s) of each second from `begun` to `ended`."""
    seconds = np.arange(begun, ended, 1.0)
    counts, _ = np.histogram(np.asarray(rows), bins=[*seconds, seconds[-1] + 1.0])
    return [(round(float(second - ordered), 3), float(count)) for second, count in zip(seconds, counts, strict=True)]
