"""The demo's report at the end, as tables and bars in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import plotext
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from evenflow.scheduler.load.metrics import OperatorLoad, WorkerFigures

from .check import Comparison

CONSOLE = Console(highlight=False)
HOTTEST = 12


@dataclass(frozen=True)
class WorkerLoad:
    """A worker's records, and the share of the time in which it worked."""

    worker: str
    records: int
    busy: float


@dataclass(frozen=True)
class Report:
    """The figures of the demo. `hottest`: destination, departures, mean delay in minutes; the first has the most departures."""

    workers: tuple[WorkerLoad, ...]
    hottest: tuple[tuple[str, int, float], ...]
    records: int
    departures: int
    destinations: int
    late: int
    imbalance: float
    seconds: float

    @classmethod
    def of(cls, result: pa.Table, figures: Sequence[WorkerFigures], load: OperatorLoad, seconds: float) -> Self:
        per_destination = (
            result.group_by("dest").aggregate([("departures", "sum"), ("total", "sum")]).sort_by([("departures_sum", "descending")])
        )
        hottest = [(row["dest"], row["departures_sum"], row["total_sum"] / row["departures_sum"]) for row in per_destination.to_pylist()]
        return cls(
            workers=tuple(WorkerLoad(w.worker, w.rows_in, load.workers[w.worker]) for w in figures if w.worker in load.workers),
            hottest=tuple(hottest[:HOTTEST]),
            records=sum(w.rows_in for w in figures if w.operator == "from_spark"),
            departures=sum(count for _, count, _ in hottest),
            destinations=len(hottest),
            late=sum(w.late_records for w in figures),
            imbalance=load.imbalance,
            seconds=seconds,
        )

    @property
    def hottest_share(self) -> float:
        """The share of all departures that go to the hottest destination."""
        return self.hottest[0][1] / self.departures

    @property
    def imbalance_of_records(self) -> float:
        """The departures of the hottest worker over the mean."""
        records = [worker.records for worker in self.workers]
        return max(records) * len(records) / sum(records)

    @property
    def floor_terms(self) -> str:
        """Workers times the share of the hottest destination, as text."""
        return f"{len(self.workers)} workers x {self.hottest_share:.1%} to {self.hottest[0][0]}"

    @property
    def floor(self) -> float:
        """The lower bound max(1, n * p1) of the imbalance of any placement of whole keys."""
        return max(1.0, len(self.workers) * self.hottest_share)


def show(report: Report, comparison: Comparison, output: Path, seconds: float) -> None:
    """Print the report."""
    _show_workers(report)
    _show_hottest(report)
    show_comparison(comparison)
    CONSOLE.print(f"{report.records:,} records in {report.seconds:.1f} s, the whole act in {seconds:.1f} s. {report.late:,} came too late.")
    CONSOLE.print(f"Results: {output / 'delays.parquet'}\nPicture: {output / 'delays.png'}")


def _show_workers(report: Report) -> None:
    table = Table(title="Load per worker", title_justify="left")
    for name in ("worker", "departures", "share", "busy"):
        table.add_column(name, justify="left" if name == "worker" else "right")
    for worker in report.workers:
        table.add_row(worker.worker, f"{worker.records:,}", f"{worker.records / report.departures:.1%}", f"{worker.busy:.1%} of its time")
    CONSOLE.print(table)
    CONSOLE.print(f"Imbalance, hottest worker over mean: {report.imbalance:.2f} by time, {report.imbalance_of_records:.2f} by departures.")
    CONSOLE.print(f"No placement of whole destinations can be below max(1, {report.floor_terms}) = {report.floor:.2f}.\n")


def _show_hottest(report: Report) -> None:
    names, counts, _ = zip(*report.hottest, strict=True)
    figure = plotext.figure
    figure.clear()
    figure.theme("simple")
    figure.title(f"Thousands of departures to the {len(names)} hottest of {report.destinations} destinations")
    figure.draw(figure.bar(names, [count / 1_000 for count in counts], width=0.7, labeled=[f"{count:,}" for count in counts]))
    figure.plot_size(min(CONSOLE.width, 120), 16)
    figure.show(colorless=not CONSOLE.is_terminal)


def show_comparison(comparison: Comparison) -> None:
    """Print the result of the comparison, and some wrong rows."""
    if comparison.equal:
        CONSOLE.print(f"Check: all {comparison.rows:,} rows are equal to those of the same query in Spark.", style="green")
        return
    CONSOLE.print(
        f"Check failed: of {comparison.rows:,} rows of the same query in Spark, {len(comparison.missing):,} are missing, "
        f"and {len(comparison.unexpected):,} others were found instead.",
        style="red",
    )
    for what, rows in (("missing", comparison.missing), ("unexpected", comparison.unexpected)):
        for row in rows[:3]:
            CONSOLE.print(f"  {what}: {dict(zip(comparison.columns, map(str, row), strict=True))}")
