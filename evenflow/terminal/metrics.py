"""Draws workers' figures, and the distribution of load."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table

from ..scheduler.load.metrics import OperatorLoad, WorkerFigures
from .console import DataTable, lines
from .units import bar, event_time, milliseconds, short_bytes, short_number

MOST_KEYS = 8
MOST_GROUPS = 8


def metrics_tables(figures: Sequence[WorkerFigures], *, totals: bool = False) -> RenderableType:
    """Draw a job's workers, a table per operator that fits into 80 columns; `totals` adds a table of totals since the start."""
    newest = newest_time(figures)
    tables: list[RenderableType] = []
    for operator, group in groupby(figures, key=lambda f: f.operator):
        workers = list(group)
        tables += [*([""] if tables else []), _rates_table(operator, workers)]
        if totals:
            tables += ["", _totals_table(operator, workers, newest)]
    return Group(*tables)


def newest_time(figures: Sequence[WorkerFigures]) -> datetime | None:
    """Return the newest watermark of any worker, None without event time."""
    return max((f.watermark for f in figures if f.watermark is not None), default=None)


def lag(figures: WorkerFigures, newest: datetime | None) -> str:
    """Format the distance from a worker's event time to the newest."""
    return "-" if figures.watermark is None or newest is None else f"{(newest - figures.watermark).total_seconds():.1f} s"


def latency(figures: WorkerFigures) -> str:
    """Format p50 and p99 in milliseconds."""
    return "-" if figures.latency_ms is None else "/".join(map(milliseconds, figures.latency_ms))


def load_table(load: OperatorLoad) -> RenderableType:
    """Draw an operator's load: workers, hottest key groups and keys, imbalance and its floor."""
    return Group(worker_table(load), _groups_and_keys(load))


def worker_table(load: OperatorLoad) -> Table:
    """Draw a row per worker; the bar is relative to the hottest worker's load."""
    even = f"imbalance {load.imbalance:.2f}, {load.floors}"
    columns = ("useful", "share", "of the mean")
    table = DataTable("worker", *columns, "", right=columns, title=f"load of {len(load.workers)} workers: {even}")
    total, hottest = sum(load.workers.values()), max(load.workers.values(), default=0.0)
    for worker, useful in load.workers.items():
        share = useful / total if total else 0.0
        figures = (f"{useful:.1%}", f"{share:.1%}", f"{share * len(load.workers):.2f}")
        table.row(worker, *figures, bar(useful / hottest if hottest else 0.0))
    return table


def keys_of(load: OperatorLoad) -> str:
    """Format the hottest keys with their share of the records, in one line.

    >>> keys_of(OperatorLoad({}, {}, (("JFK", 30), ("LAX", 5)), 100))
    'JFK 30.0%, LAX 5.0%'
    """
    records = max(load.records, 1)
    return ", ".join(f"{key} {count / records:.1%}" for key, count in load.hot_keys[:MOST_KEYS])


def _rates_table(operator: str, workers: Sequence[WorkerFigures]) -> Table:
    """Draw the newest window of an operator's workers. The title has figures of all workers, and counts that should be zero."""
    times = [f.watermark for f in workers if f.watermark is not None]
    parts = [f"{operator}: {len(workers)} worker{'s' * (len(workers) != 1)}"]
    parts += [f"event time {event_time(min(times))}"] if times else []
    lags = [split.lag for f in workers for split in f.splits if split.lag is not None]
    parts += [f"{sum(lags):,} records behind"] if lags else []
    for what in ("late_records", "skipped_records", "refused_messages"):
        count = sum(getattr(f, what) for f in workers)
        parts += [f"{count:,} {what.replace('_', ' ')}"] if count else []
    columns = ("in/s", "out/s", "useful", "no input", "no credit", "queued", "state", "p50/p99 ms")
    table = DataTable("no.", *columns, right=columns, title=", ".join(parts))
    for f in workers:
        rates = (short_number(f.rows_in_per_second), short_number(f.rows_out_per_second))
        shares = (f"{share:.0%}" for share in (f.useful_share, f.input_wait_share, f.backpressure))
        table.row(_number(f), *rates, *shares, short_number(f.queued_batches), short_bytes(f.state_bytes), latency(f))
    return table


def _totals_table(operator: str, workers: Sequence[WorkerFigures], newest: datetime | None) -> Table:
    columns = ("rows in", "rows out", "late", "skipped", "refused", "lag")
    table = DataTable("no.", *columns, right=columns, title=f"{operator}, so far")
    for f in workers:
        counts = (f.rows_in, f.rows_out, f.late_records, f.skipped_records, f.refused_messages)
        table.row(_number(f), *(f"{count:,}" for count in counts), lag(f, newest))
    return table


def _number(figures: WorkerFigures) -> str:
    """Return a worker's index, with the version of its code behind it if that isn't the first: the title has the operator's name."""
    return figures.worker.rpartition("-")[2]


def _groups_and_keys(load: OperatorLoad) -> RenderableType:
    hottest = sorted(load.groups.items(), key=lambda item: -item[1])[:MOST_GROUPS]
    groups = ", ".join(f"{group} {useful:.1%}" for group, useful in hottest) or "-"
    return lines((f"hottest groups {groups}", f"hottest keys   {keys_of(load) or '-'}"))
