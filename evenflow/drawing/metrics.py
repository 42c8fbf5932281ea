"""Tables of workers' figures, and of the distribution of load."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table

from ..scheduler.load.metrics import OperatorLoad, WorkerFigures
from .terminal import DataTable, lines
from .units import bar, event_time, milliseconds, short_bytes, short_number

MOST_KEYS = 8
MOST_GROUPS = 8


def metrics_tables(figures: Sequence[WorkerFigures], *, totals: bool = False) -> RenderableType:
    """A job's workers, a table per operator that fits into 80 columns; `totals` adds a table of totals since the start."""
    newest = newest_time(figures)
    tables: list[RenderableType] = []
    for operator, group in groupby(figures, key=lambda f: f.operator):
        workers = list(group)
        tables += [*([""] if tables else []), _rates_table(operator, workers)]
        if totals:
            tables += ["", _totals_table(operator, workers, newest)]
    return Group(*tables)


def newest_time(figures: Sequence[WorkerFigures]) -> int | None:
    """The newest watermark of any worker, None where there is no event time."""
    return max((f.watermark for f in figures if f.watermark is not None), default=None)


def lag(figures: WorkerFigures, newest: int | None) -> str:
    """How far a worker's event time is behind the newest."""
    return "-" if figures.watermark is None or newest is None else f"{(newest - figures.watermark) / 1e6:.1f} s"


def latency(figures: WorkerFigures) -> str:
    """p50 and p99 in milliseconds."""
    return "-" if figures.latency_ms is None else "/".join(map(milliseconds, figures.latency_ms))


def load_table(load: OperatorLoad) -> RenderableType:
    """An operator's load: workers, hottest key groups and keys, imbalance beside its floor."""
    return Group(worker_table(load), _groups_and_keys(load))


def worker_table(load: OperatorLoad) -> Table:
    """A worker per line; the bar is its part of the hottest worker's load."""
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
    """The hottest keys with their part of the records, in one line.

    >>> keys_of(OperatorLoad({}, {}, (("JFK", 30), ("LAX", 5)), 100))
    'JFK 30.0%, LAX 5.0%'
    """
    records = max(load.records, 1)
    return ", ".join(f"{key} {count / records:.1%}" for key, count in load.hot_keys[:MOST_KEYS])


def _rates_table(operator: str, workers: Sequence[WorkerFigures]) -> Table:
    """The newest window of an operator's workers. Figures of all workers together, and those that should be zero, are in the title."""
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


def _totals_table(operator: str, workers: Sequence[WorkerFigures], newest: int | None) -> Table:
    columns = ("rows in", "rows out", "late", "skipped", "refused", "lag")
    table = DataTable("no.", *columns, right=columns, title=f"{operator}, so far")
    for f in workers:
        counts = (f.rows_in, f.rows_out, f.late_records, f.skipped_records, f.refused_messages)
        table.row(_number(f), *(f"{count:,}" for count in counts), lag(f, newest))
    return table


def _number(figures: WorkerFigures) -> str:
    """A worker's number, by which commands name it: the title has the operator's name."""
    return figures.worker.removeprefix(f"{figures.operator}-")


def _groups_and_keys(load: OperatorLoad) -> RenderableType:
    hottest = sorted(load.groups.items(), key=lambda item: -item[1])[:MOST_GROUPS]
    groups = ", ".join(f"{group} {useful:.1%}" for group, useful in hottest) or "-"
    return lines((f"hottest groups {groups}", f"hottest keys   {keys_of(load) or '-'}"))
