"""The picture of NexMark while state moves and workers come: latency around each change, a panel for each query."""

from __future__ import annotations

from typing import Any

from ..record import Run

COLUMNS, PANEL = 2, (5.0, 3.0)
"""Panels beside each other, and inches of one."""


def draw(run: Run, axes: Any) -> None:
    """A figure of panels in place of `axes`."""
    figure, rows = axes.figure, -(-len(run.series) // COLUMNS)
    axes.remove()
    figure.set_size_inches(PANEL[0] * COLUMNS, PANEL[1] * rows)
    panels = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for query, curves in run.series.items():
        panel = panels.pop(0)
        for name, curve in curves.items():
            panel.plot([piece[0] for piece in curve], [piece[2] for piece in curve], ".-", linewidth=0.8, markersize=3, label=name)
        panel.axvline(0.0, color="gray", linestyle=":")
        panel.set_yscale("log")
        panel.set_title(query, fontsize="medium")
        panel.set_xlabel("seconds since the change began, of when a result was due")
        panel.set_ylabel("largest of 50 ms, ms")
    for unused in panels:
        unused.set_axis_off()
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
