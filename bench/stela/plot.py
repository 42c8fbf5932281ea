"""The picture of a run of Stela's topologies: throughput by second around the order, a panel for each topology and direction."""

from __future__ import annotations

from typing import Any

from ..record import Run

PANEL = (4.2, 2.4)
"""Inches."""


def draw(run: Run, axes: Any) -> None:
    """A figure of panels in place of `axes`, with a row for each topology."""
    figure = axes.figure
    axes.remove()
    panels: dict[str, dict[str, Any]] = {}
    for name, curve in run.series.items():
        what, _, policy = name.rpartition(", ")
        panels.setdefault(what, {})[policy] = curve
    columns = len(run.arguments["directions"])
    rows = -(-len(panels) // columns)
    figure.set_size_inches(PANEL[0] * columns, PANEL[1] * rows)
    for panel, (what, curves) in zip(figure.subplots(rows, columns, squeeze=False).flat, panels.items(), strict=False):
        for policy, curve in curves.items():
            panel.plot([second for second, _ in curve], [rate for _, rate in curve], label=policy, linewidth=1.2)
        panel.axvline(0.0, color="gray", linestyle=":")
        panel.set_title(what, fontsize="medium")
        panel.set_xlabel("seconds since the order")
        panel.set_ylabel("rows/s at the sinks")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="x-small")
