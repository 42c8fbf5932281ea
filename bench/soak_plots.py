"""The picture of a soak run: memory and counts of every process over time, and of the driver from job to job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .record import Run

PANEL = (6.0, 3.2)
"""Inches."""

COUNTED = ("descriptors", "threads", "children")

Curves = Mapping[str, Sequence[Sequence[float]]]


def draw(run: Run, axes: Any) -> None:
    """A figure in place of `axes`: a row of panels for the long job, and one for each runtime's jobs."""
    figure = axes.figure
    axes.remove()
    figure.set_size_inches(2 * PANEL[0], PANEL[1] * sum(2 if part == "job" else 1 for part in run.series))
    panels = [panel for part, curves in run.series.items() for panel in panels_of(part, curves)]
    for panel, (title, x, y, names) in zip(figure.subplots(len(panels) // 2, 2, squeeze=False).flat, panels, strict=True):
        curves, shorten = names
        for name, curve in curves.items():
            panel.plot([point[0] for point in curve], [point[1] for point in curve], label=shorten(name), linewidth=1.2)
        panel.set_title(title, fontsize="medium")
        panel.set_xlabel(x)
        panel.set_ylabel(y)
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="x-small", ncols=2)


def panels_of(part: str, curves: Curves) -> list[tuple[str, str, str, tuple[Curves, Callable[[str], str]]]]:
    """Title, names of both axes, and the curves of each panel, with how their names are cut short."""

    def chosen(*ends: str, rays: bool = False) -> Curves:
        return {name: curve for name, curve in curves.items() if name.endswith(ends) and name.startswith("Ray") == rays and _drawn(name)}

    def first(name: str) -> str:
        return name.rpartition(" ")[0]

    if part != "job":
        driver = {name: curve for name, curve in chosen(*COUNTED).items() if name.startswith("driver")}
        return [
            (f"{part}: the driver's memory", "job", "MiB resident", (chosen(" rss"), first)),
            (f"{part}: what the driver has", "job", "number", (driver, str)),
        ]
    return [
        ("resident memory", "minutes", "MiB", (chosen(" rss"), first)),
        ("descriptors", "minutes", "number", (chosen(" descriptors"), first)),
        ("Ray's own processes", "minutes", "MiB resident", (chosen(" rss", rays=True), first)),
        ("files", "minutes", "number", (chosen("checkpoints files", "sockets", "temporary folders"), str)),
    ]


def _drawn(name: str) -> bool:
    return not name.startswith("job ")
