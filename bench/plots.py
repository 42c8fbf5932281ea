"""Plots of a run: bars of throughput, latency by second, memory over time, and what a benchmark draws itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import scaling_plots, soak_plots
from .nexmark import plots as nexmark_plots
from .nexmark import query_plot
from .record import Run
from .stela import plot as stela_plot

SIZE = (8.0, 4.5)


def plot(run: Run, path: Path) -> bool:
    """Write the run's PNG; False for a benchmark that has no plot."""
    draw = {"throughput": _throughput, "latency": _latency, "memory": _memory, "migration": _migration, "skew": _skew}.get(run.benchmark)
    if run.benchmark == "scaling" and scaling_plots.panels(run):
        draw = scaling_plots.draw
    if run.benchmark == "recovery" and run.series:
        draw = _recovery
    if run.benchmark == "nexmark":
        draw = query_plot.draw
    if run.benchmark == "nexmark-moves":
        draw = nexmark_plots.draw
    if run.benchmark == "soak":
        draw = soak_plots.draw
    if run.benchmark == "stela":
        draw = stela_plot.draw
    if draw is None:
        return False
    _save(run, path, draw)
    return True


def _save(run: Run, path: Path, draw: Callable[[Run, Any], None]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=SIZE, layout="constrained")
    try:
        draw(run, axes)
        figure.savefig(path, dpi=120)
    finally:
        plt.close(figure)


def _throughput(run: Run, axes: Any) -> None:
    cases = run.cases[::-1]
    colours = ["tab:blue" if case.name.endswith("/evenflow") else "tab:gray" for case in cases]
    bars = axes.barh([case.name for case in cases], [case.median / 1e6 for case in cases], color=colours)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.set_xscale("log")
    axes.set_xlabel("million rows per second (median, logarithmic)")
    axes.margins(x=0.1)


def _latency(run: Run, axes: Any) -> None:
    for rate, figures in run.series.items():
        seconds = [figure[0] for figure in figures]
        (line,) = axes.plot(seconds, [figure[2] for figure in figures], label=f"{int(rate):,} rows/s, p99")
        axes.plot(seconds, [figure[1] for figure in figures], linestyle=":", color=line.get_color(), label=f"{int(rate):,} rows/s, p50")
    axes.set_yscale("log")
    axes.set_xlabel("second")
    axes.set_ylabel("end-to-end latency, ms")
    axes.legend()


def _memory(run: Run, axes: Any) -> None:
    axes.plot([sample[0] for sample in run.series["rss"]], [sample[1] for sample in run.series["rss"]])
    axes.set_ylim(0, 1.1 * max(sample[1] for sample in run.series["rss"]))
    axes.set_xlabel("minutes before a slow sink" if run.arguments.get("slow_sink") else "minutes at full speed")
    axes.set_ylabel("resident memory of all workers, MiB")


def _migration(run: Run, axes: Any) -> None:
    for strategy, curves in run.series.items():
        axes.plot([piece[0] for piece in curves[0]], [piece[1] for piece in curves[0]], label=strategy)
    axes.axvline(0.0, color="gray", linestyle=":")
    axes.set_yscale("log")
    axes.set_xlabel("seconds since the migration began")
    axes.set_ylabel("p99 of 50 ms, ms")
    axes.legend()


def _skew(run: Run, axes: Any) -> None:
    """Imbalance over its floor, window by window, where the static table is worst."""
    _, zipf, workers = max(run.series, key=lambda name: max(i / f for i, f in zip(*run.series[name], strict=True))).split()
    for policy in ("off", "hotspot", "lpt"):
        imbalance, floor = run.series[f"{policy} {zipf} {workers}"]
        axes.plot([i / f for i, f in zip(imbalance, floor, strict=True)], label=policy)
    axes.set_title(f"{workers} workers, Zipf {zipf}, all ranks change every 10 windows")
    axes.set_xlabel("window")
    axes.set_ylabel("imbalance / floor")
    axes.legend()


def _recovery(run: Run, axes: Any) -> None:
    """Seconds from the kill to the first output and to the first that is new, system by system."""
    names = list(run.series)[::-1]
    firsts, news = ([run.series[name][i] for name in names] for i in (0, 1))
    axes.barh(names, news, color="tab:blue", label="new output")
    axes.barh(names, firsts, color="tab:cyan", height=0.4, label="first output")
    for place, seconds in enumerate(news):
        axes.annotate(f"{seconds:.1f} s", (seconds, place), xytext=(3, 0), textcoords="offset points", va="center")
    axes.set_xscale("log")
    axes.set_xlabel("seconds from the kill, 1,000,000 keys (logarithmic)")
    axes.margins(x=0.15)
    axes.legend(loc="upper right")
