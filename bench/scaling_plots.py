"""The picture of a scaling run: workers and how many are enough, policy by policy, and latency while an operator gets a third worker."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isnan
from typing import Any

import numpy as np

from .record import Run

COLUMNS = 3
PANEL = (4.2, 2.6)
"""Inches."""

LONGEST = 0.5
"""Seconds between two points of a latency curve, above which nothing was read in between."""

OPERATORS = ("split", "count")
"""What the two operators do, in the order in which they come."""

SCALINGS = "scaling, 2 to 3"
"""What the names of the latency curves begin with."""


def panels(run: Run) -> list[str]:
    """What has a panel: the courses, without those in model time that don't scale linearly, and the latencies of the scalings together."""
    courses = [name for name in run.series if name.startswith(("model, linear", "Ray, "))]
    return [*courses, *([SCALINGS] if any(name.startswith(SCALINGS) for name in run.series) else [])]


def draw(run: Run, axes: Any) -> None:
    """A figure of panels in place of `axes`."""
    figure, names = axes.figure, panels(run)
    axes.remove()
    rows = -(-len(names) // COLUMNS)
    figure.set_size_inches(PANEL[0] * COLUMNS, PANEL[1] * rows)
    free = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for name in names:
        panel = free.pop(0)
        if name == SCALINGS:
            _scalings(panel, {each: curve for each, curve in run.series.items() if each.startswith(SCALINGS)})
        else:
            _course(panel, name, run.series[name])
    for unused in free:
        unused.set_axis_off()
    if names[0] != SCALINGS:
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def _course(axes: Any, name: str, series: dict[str, Any]) -> None:
    for colour, what, (operator, workers) in zip(("tab:blue", "tab:orange"), OPERATORS, series["workers"].items(), strict=True):
        axes.plot(series["time"], workers, color=colour, drawstyle="steps-post", label=what)
        least = f"{what}, fewest that are enough"
        axes.plot(series["time"], series["optimum"][operator], color=colour, linestyle="--", linewidth=1.0, label=least)
    axes.set_title(name, fontsize="medium")
    axes.set_xlabel("seconds")
    axes.set_ylabel("workers")
    axes.set_ylim(bottom=0)


def _scalings(axes: Any, scalings: dict[str, Any]) -> None:
    for name, curve in scalings.items():
        (line,) = axes.plot(*with_gaps(curve), label=name.removeprefix(f"{SCALINGS}, "))
        for begun, ended, first in stalls(curve):
            times = np.linspace(begun, ended)
            axes.plot(times, (ended - times) * 1000 + first, color=line.get_color(), linestyle=":")
    axes.axvline(0.0, color="gray", linestyle=":")
    axes.set_yscale("log")
    axes.set_title("from two workers to three", fontsize="medium")
    axes.set_xlabel("seconds since the scaling began")
    axes.set_ylabel("p99 of 50 ms, ms")
    axes.legend(fontsize="x-small")


def stalls(curve: Sequence[Sequence[float]]) -> list[tuple[float, float, float]]:
    """From when to when no row was read, where that was longer than `LONGEST`, and the p99 right after it.

    A row that was due in a stall waited for its end, and then that long.

    >>> stalls([(0.0, 5.0), (0.05, 5.0), (2.0, 9.0)])
    [(0.05, 2.0, 9.0)]
    """
    return [(before[0], after[0], after[1]) for before, after in pairwise(curve) if after[0] - before[0] > LONGEST]


def with_gaps(curve: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Times and p99s of a curve, with a gap in each stall."""
    gaps = [(begun, float("nan")) for begun, _, _ in stalls(curve)]
    points = sorted([*((piece[0], piece[1]) for piece in curve), *gaps], key=lambda point: (point[0], isnan(point[1])))
    return [time for time, _ in points], [p99 for _, p99 in points]
