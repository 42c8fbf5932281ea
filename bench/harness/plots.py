"""Saves the plots of runs, and lays out their panels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .record import Run

SIZE = (8.0, 4.5)
"""Inches."""


def save_plot(run: Run, path: Path, draw: Callable[[Run, Any], None]) -> bool:
    """Write the PNG of a run; False if the run has nothing to draw."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=SIZE, layout="constrained")
    try:
        draw(run, figure)
        if figure.axes:
            figure.savefig(path, dpi=120)
        return bool(figure.axes)
    finally:
        plt.close(figure)


def panels(figure: Any, count: int, columns: int, size: tuple[float, float]) -> list[Any]:
    """Return the axes of `count` panels of `size` inches, `columns` in a row."""
    rows = -(-count // columns)
    figure.set_size_inches(size[0] * columns, size[1] * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[count:]:
        unused.set_axis_off()
    return axes[:count]
