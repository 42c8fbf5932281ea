"""Draws a soak run: memory and counts of every process over time, and of the driver from job to job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..harness.plots import panels
from ..harness.record import Run

PANEL = (6.0, 3.2)
"""Inches."""

COUNTED = ("descriptors", "threads", "children")

Curves = Mapping[str, Sequence[Sequence[float]]]


def draw(run: Run, figure: Any) -> None:
    """Draw two rows of panels for the long job, and one for each runtime's jobs."""
    described = [panel for part, curves in run.series.items() for panel in panels_of(part, curves)]
    for axes, (title, x, y, curves, shorten) in zip(panels(figure, len(described), 2, PANEL), described, strict=True):
        for name, curve in curves.items():
            axes.plot([point[0] for point in curve], [point[1] for point in curve], label=shorten(name), linewidth=1.2)
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="x-small", ncols=2)


def panels_of(part: str, curves: Curves) -> list[tuple[str, str, str, Curves, Callable[[str], str]]]:
    """Return title, names of both axes, and curves of each panel, with a function that shortens the curves' names."""

    def chosen(*ends: str, rays: bool = False) -> Curves:
        drawn = ((name, curve) for name, curve in curves.items() if not name.startswith("job "))
        return {name: curve for name, curve in drawn if name.endswith(ends) and name.startswith("Ray") == rays}

    def first(name: str) -> str:
        return name.rpartition(" ")[0]

    if part != "job":
        driver = {name: curve for name, curve in chosen(*COUNTED).items() if name.startswith("driver")}
        return [
            (f"{part}: the driver's memory", "job", "MiB resident", chosen(" rss"), first),
            (f"{part}: the driver's resources", "job", "number", driver, str),
        ]
    return [
        ("resident memory", "minutes", "MiB", chosen(" rss"), first),
        ("descriptors", "minutes", "number", chosen(" descriptors"), first),
        ("Ray's own processes", "minutes", "MiB resident", chosen(" rss", rays=True), first),
        ("files", "minutes", "number", chosen("checkpoints files", "sockets", "temporary folders"), str),
    ]
