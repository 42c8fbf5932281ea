"""Medians, spreads and noise of a few repeated measurements.

>>> spread([9.0, 10.0, 11.0])
0.2
>>> is_noise([10.0, 10.4], [10.3, 10.6]), is_noise([10.0, 10.1], [20.0, 20.2])
(True, False)
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

SMALLEST_NOISE = 0.03
"""Two medians that differ by less are the same, however little the iterations of a run differ among themselves."""


def spread(values: Sequence[float]) -> float:
    """Return (largest - smallest) / median; 0 for a single value."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def noise_band(*runs: Sequence[float]) -> float:
    """Return the relative difference of two medians that chance explains: the largest spread of the runs."""
    return max(SMALLEST_NOISE, *(spread(values) for values in runs))


def is_noise(a: Sequence[float], b: Sequence[float]) -> bool:
    """Return True if the difference of the medians is within the noise band."""
    before = median(a)
    return before == median(b) or (before != 0 and abs(median(b) / before - 1) <= noise_band(a, b))


def robust_slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the median of the slopes between all pairs of points (Theil 1950, Sen 1968), which a few outliers can't tilt.

    >>> robust_slope([0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 5.0, 7.0, 90.0])
    2.0
    """
    points = list(zip(xs, ys, strict=True))
    return median((y - b) / (x - a) for i, (x, y) in enumerate(points) for a, b in points[:i] if x != a)
