"""The live display of the running job: records per second, how busy each worker is, and its event time."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

import evenflow as ef
from evenflow.scheduler.load.metrics import WorkerFigures

from .report import CONSOLE

PER_SECOND = 4
RATE_OVER = 3 * PER_SECOND
"""The number of views over which the rate is averaged: Spark's micro-batches arrive about every second."""


class LiveView:
    """A context in which the job's figures are shown, a few times a second."""

    def __init__(self, job: ef.Job) -> None:
        self._job = job
        self._figures: Sequence[WorkerFigures] = ()
        self._seconds = 0.0
        self._watermark: dt.datetime | None = None
        self._seen: deque[tuple[float, int]] = deque(maxlen=RATE_OVER)
        self._live = Live(get_renderable=self._render, console=CONSOLE, refresh_per_second=PER_SECOND)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        with suppress(ef.JobError):  # the job is just ending: keep the last view
            self._figures, self._seconds = self._job.metrics(), self._job.status().running_seconds
        marks = [worker.watermark for worker in self._figures if worker.watermark is not None]
        if marks:
            self._watermark = min(marks)
        return Group(self._headline(), _workers(self._figures), "")

    def _headline(self) -> Text:
        rows = sum(worker.rows_in for worker in self._figures if worker.operator == "from_spark")
        self._seen.append((self._seconds, rows))
        (began, before), (ended, _) = self._seen[0], self._seen[-1]
        rate = (rows - before) / (ended - began) if ended > began else 0.0
        day = "-" if self._watermark is None else f"{self._watermark:%d %B %Y}"
        return Text.assemble(
            *((f"{rows:>9,}", "bold"), " records   ", (f"{rate:>7,.0f}", "bold"), " records/s   "),
            *("event time ", (f"{day:<18}", "bold"), f"{self._seconds:5.1f} s"),
        )


def _workers(figures: Sequence[WorkerFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name, justify in (("worker", "left"), ("records in", "right"), ("busy", "left"), ("", "right"), ("waits for credit", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for worker in figures:
        table.add_row(
            worker.worker, f"{worker.rows_in:,}", _bar(worker.useful_share), f"{worker.useful_share:4.0%}", f"{worker.backpressure:.0%}"
        )
    return table


def _bar(share: float, width: int = 30) -> Text:
    full = round(min(share, 1.0) * width)
    return Text.assemble(("█" * full, "green"), ("░" * (width - full), "dim"))
