"""The picture of the demo's result: load per worker, and the hottest destinations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, INK = "#3b6ea8", "#333333"


def draw(report: Report, path: Path) -> None:
    """Write the picture as PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context(
        {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK, "axes.titlelocation": "left"}
    ):
        figure, (workers, destinations) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(2, 3), layout="constrained")
        _draw_workers(workers, report)
        _draw_destinations(destinations, report)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        plt.close(figure)


def _draw_workers(axes: Axes, report: Report) -> None:
    names = [worker.worker for worker in report.workers]
    bars = axes.bar(names, [worker.records for worker in report.workers], color=BLUE, width=0.6)
    labels = [f"{w.records:,}\nbusy {w.busy:.1%}" for w in report.workers]
    axes.bar_label(bars, labels, label_type="center", color="white")
    mean = report.departures / len(report.workers)
    axes.axhline(mean, color=INK, linestyle="--", linewidth=1)
    axes.annotate(
        "mean", (0.5, mean), xycoords=("axes fraction", "data"), xytext=(0, 3), textcoords="offset points", ha="center", color=INK
    )
    axes.set_title(f"Departures per worker\nimbalance {report.imbalance_of_records:.2f}, at best {report.floor:.2f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _draw_destinations(axes: Axes, report: Report) -> None:
    names, counts, delays = zip(*report.hottest, strict=True)
    axes.bar([f"{name}\n{delay:.0f}" for name, delay in zip(names, delays, strict=True)], counts, color=BLUE)
    shown = sum(counts) / report.departures
    axes.set_title(
        f"The {len(names)} hottest of {report.destinations} destinations: {shown:.0%} of the departures\nbelow: their mean delay in minutes"
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
