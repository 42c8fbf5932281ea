"""The picture of NexMark's queries: rows a second of each system, query by query."""

from __future__ import annotations

import math
from typing import Any

from ..record import Run
from .queries import QUERIES

COLOURS = {"evenflow": "tab:blue", "flink": "tab:orange", "spark": "tab:gray"}
SHARE = 0.8
"""Of a query's width, what its bars take together."""


def draw(run: Run, axes: Any) -> None:
    """Bars of the median rates; a query that a system can't say has none of it."""
    queries = [query for query in QUERIES if any(run.case(f"{query}/{system}") for system in COLOURS)]
    systems = [system for system in COLOURS if any(run.case(f"{query}/{system}") for query in queries)]
    axes.figure.set_size_inches(max(6.0, 0.55 * len(queries) + 1.5), 4.5)
    for number, system in enumerate(systems):
        rates = [case.median / 1e6 if (case := run.case(f"{query}/{system}")) else math.nan for query in queries]
        left = -SHARE / 2 + (number + 0.5) * SHARE / len(systems)
        axes.bar([place + left for place in range(len(queries))], rates, SHARE / len(systems), label=system, color=COLOURS[system])
    axes.set_xticks(range(len(queries)), queries)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("million rows per second (median, logarithmic)")
    axes.legend(loc="upper right", ncols=len(systems))
