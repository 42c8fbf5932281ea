"""Draws the heat of an operator's key groups, and the load of its workers against the floor, as lines of text.

>>> strip(np.array([0.0, 0.1, 0.4, 0.8]), 4, hottest=0.8)
'·▂▅█'
>>> strip(np.array([0.0, 0.1, 0.4, 0.8]), 2, hottest=0.8)
'▂█'
>>> marked_bar(0.5, 0.75, 8)
'████  │ '
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType

from ..scheduler.load.metrics import OperatorLoad
from ..scheduler.protocol.view import StageView
from ..views.heat import Loads, drawn_owners
from .console import DataTable, lines
from .metrics import keys_of

STRIP, BAR = 28, 12

MOST_WORKERS = 64
"""The most rows of a table of workers: more fit on no screen, and a thousand take more than a second to draw."""

_HEIGHTS = "▁▂▃▄▅▆▇█"


def heat_table(stage: StageView, load: OperatorLoad, text: str = "") -> RenderableType:
    """Draw an operator with keyed state: a row per worker with the heat of its key groups, its load, and the floor as `│`; its hottest
    keys.

    A character of the strip shows the hottest of some neighbouring key groups, relative to the operator's hottest group. `text`: a sentence
    about how even the load is.
    """
    owned = stage.table.groups if stage.table is not None else np.zeros(0, np.uint16)
    drawn = drawn_owners(stage.table) if stage.table is not None else owned
    groups = np.array([load.groups.get(group, 0.0) for group in range(len(owned))])
    mean = sum(load.workers.values()) / max(len(load.workers), 1)
    most = max((*load.workers.values(), mean * load.floor), default=0.0) or 1.0
    title = f"{stage.name}: imbalance {load.imbalance:.2f}, {load.floors}, balancer {stage.balancer}"
    table = DataTable("worker", "groups", "heat of its key groups", "load, floor │", "busy", right=("groups", "busy"), title=title)
    hottest = float(groups.max(initial=0.0))
    loads = [load.workers.get(worker, 0.0) for worker in stage.workers]
    for index in busiest(loads, table):
        worker, busy = stage.workers[index], loads[index]
        bars = marked_bar(busy / most, mean * load.floor / most, BAR)
        heat = strip(groups[drawn == index], STRIP, hottest)
        table.row(worker, str(np.count_nonzero(owned == index)), heat, bars, f"{busy:.0%}")
    keys = keys_of(load)
    return Group(table, lines([*([f"hottest keys {keys}"] if keys else []), *([text] if text else [])]))


def busiest(shares: Sequence[float], table: DataTable) -> list[int]:
    """Return the places of all workers, or of many the `MOST_WORKERS` busiest, in rising order; then the table says so."""
    if len(shares) <= MOST_WORKERS:
        return list(range(len(shares)))
    table.caption, table.caption_justify = f"the {MOST_WORKERS} busiest of {len(shares):,} workers", "left"
    return sorted(sorted(range(len(shares)), key=lambda at: -shares[at])[:MOST_WORKERS])


def strip(loads: Loads, width: int, hottest: float) -> str:
    """Draw the loads in at most `width` characters, each as high as the hottest of its groups; `·` for none."""
    if not len(loads):
        return ""
    parts = np.array_split(loads, min(width, len(loads)))
    return "".join(_height(float(part.max()) / hottest if hottest else 0.0) for part in parts)


def marked_bar(share: float, mark: float, width: int) -> str:
    """Draw a bar that fills `share` of `width` characters, with a `│` at `mark`."""
    at, full = min(round(mark * width), width - 1), round(min(share, 1.0) * width)
    return "".join("│" if place == at else "█" if place < full else " " for place in range(width))


def _height(part: float) -> str:
    return "·" if part <= 0 else _HEIGHTS[min(int(part * len(_HEIGHTS)), len(_HEIGHTS) - 1)]
