"""What a job's figures look like for people: workers, load with bars, migrations, checkpoints, decisions.

>>> bar(0.5, 8), bar(2.0, 4), bar(0.0, 4)
('████', '████', '')
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table

from .checkpoints import CheckpointReport
from .drawing import DataTable, lines
from .metrics import OperatorLoad, WorkerFigures
from .migration import MigrationReport, MigrationState
from .scaling.controller import DecisionRecord

MOST_KEYS = 8
MOST_GROUPS = 8

_SHORT = ("no.", "operator", "strategy", "state", "steps", "keys moved", "bytes", "seconds", "p50/p99 ms")
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int = 24) -> str:
    """A bar of `share` of `width` characters, to an eighth of a character; what is above 1 is cut off."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def metrics_tables(figures: Sequence[WorkerFigures], *, totals: bool = False) -> RenderableType:
    """A job's workers, a table per operator that fits into 80 columns; `totals`: another with what each has done so far."""
    tables = []
    for operator, group in groupby(figures, key=lambda f: f.operator):
        workers = list(group)
        tables.append(_rates_table(operator, workers))
        if totals:
            tables.append(_totals_table(operator, workers))
    return Group(*tables)


def event_time(watermark: int | None) -> str:
    """Microseconds since the epoch as a time in UTC, to the second.

    >>> event_time(1_500_000), event_time(None)
    ('1970-01-01 00:00:01', '-')
    """
    return "-" if watermark is None else f"{datetime.fromtimestamp(watermark // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"


def short_number(value: float) -> str:
    """A number in at most six characters.

    >>> short_number(7.4), short_number(999.7), short_number(12_345.0), short_number(999_900.0), short_number(2_500_000_000.0)
    ('7', '1k', '12.3k', '1M', '2.5G')
    """
    for suffix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor * 0.9995:
            return f"{value / factor:.3g}{suffix}" if value < 999.5 * factor else f"{value / factor:.0f}{suffix}"
    return f"{value:.0f}"


def short_bytes(count: int) -> str:
    """Bytes in at most eight characters.

    >>> short_bytes(0), short_bytes(1500), short_bytes(5 * 2**30)
    ('0 B', '1.5 KiB', '5 GiB')
    """
    for suffix, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:.3g} {suffix}" if count < 999.5 * factor else f"{count / factor:.0f} {suffix}"
    return f"{count} B"


def _rates_table(operator: str, workers: Sequence[WorkerFigures]) -> Table:
    """The newest window of an operator's workers; what concerns all of them, and what should be nothing, stands in the title."""
    times = [f.watermark for f in workers if f.watermark is not None]
    parts = [f"{operator}: {len(workers)} worker{'s' * (len(workers) != 1)}"]
    parts += [f"event time {event_time(min(times))}"] if times else []
    for what in ("late_records", "skipped_records", "refused_messages"):
        count = sum(getattr(f, what) for f in workers)
        parts += [f"{count:,} {what.replace('_', ' ')}"] if count else []
    columns = ("in/s", "out/s", "useful", "no input", "no credit", "queued", "state", "p50/p99 ms")
    table = DataTable("worker", *columns, right=columns, title=", ".join(parts))
    for f in workers:
        latency = "-" if f.latency_ms is None else f"{f.latency_ms[0]:.3g}/{f.latency_ms[1]:.3g}"
        rates = (short_number(f.rows_in_per_second), short_number(f.rows_out_per_second))
        shares = (f"{share:.0%}" for share in (f.useful_share, f.input_wait_share, f.backpressure))
        table.row(_number(f), *rates, *shares, short_number(f.queued_batches), short_bytes(f.state_bytes), latency)
    return table


def _totals_table(operator: str, workers: Sequence[WorkerFigures]) -> Table:
    columns = ("rows in", "rows out", "late", "skipped", "refused")
    table = DataTable("worker", *columns, "event time", right=columns, title=f"{operator}, so far")
    for f in workers:
        counts = (f.rows_in, f.rows_out, f.late_records, f.skipped_records, f.refused_messages)
        table.row(_number(f), *(f"{count:,}" for count in counts), event_time(f.watermark))
    return table


def _number(figures: WorkerFigures) -> str:
    """A worker's number, by which commands name it: the title has the operator's name."""
    return figures.worker.removeprefix(f"{figures.operator}-")


def load_table(load: OperatorLoad) -> RenderableType:
    """How an operator's load is shared out: workers, hottest key groups and keys, imbalance beside its floor."""
    return Group(worker_table(load), _groups_and_keys(load))


def worker_table(load: OperatorLoad) -> Table:
    """A worker per line; the bar is its part of the hottest worker's load."""
    even = f"imbalance {load.imbalance:.2f}, floor {load.floor:.2f}"
    columns = ("useful", "share", "of the mean")
    table = DataTable("worker", *columns, "", right=columns, title=f"load of {len(load.workers)} workers: {even}")
    total, hottest = sum(load.workers.values()), max(load.workers.values(), default=0.0)
    for worker, useful in load.workers.items():
        share = useful / total if total else 0.0
        figures = (f"{useful:.1%}", f"{share:.1%}", f"{share * len(load.workers):.2f}")
        table.row(worker, *figures, bar(useful / hottest if hottest else 0.0))
    return table


def decisions_table(decisions: Sequence[DecisionRecord]) -> RenderableType:
    """A decision per line, the oldest first, and on what and why each was made."""
    table = DataTable("no.", "at", "policy", "decided", "done", right=("no.",), title="decisions")
    for number, record in enumerate(decisions):
        at = f"{datetime.fromtimestamp(record.time, UTC).astimezone():%H:%M:%S}"
        table.row(str(number), at, record.policy, _decided(record), record.done)
    why = (f"{number}: saw {record.saw}\n   {record.decided.reason}" for number, record in enumerate(decisions))
    return Group(table, lines(why))


def _decided(record: DecisionRecord) -> str:
    before = record.seen.parallelism
    changes = [f"{name} {before[name]} -> {workers}" for name, workers in record.decided.parallelism.items()]
    return ", ".join([*changes, *(f"{name} rebalanced" for name in record.decided.rebalance)])


def keys_of(load: OperatorLoad) -> str:
    """The hottest keys with their part of the records, in one line.

    >>> keys_of(OperatorLoad({}, {}, (("JFK", 30), ("LAX", 5)), 100))
    'JFK 30.0%, LAX 5.0%'
    """
    records = max(load.records, 1)
    return ", ".join(f"{key} {count / records:.1%}" for key, count in load.hot_keys[:MOST_KEYS])


def migrations_table(reports: Sequence[MigrationReport]) -> RenderableType:
    """A migration per line, the oldest first, and why each was made."""
    table = DataTable(*_SHORT, right=[column for column in _SHORT if column not in ("operator", "strategy", "state")], title="migrations")
    for report in reports:
        facts = dict(migration_facts(report))
        table.row(*(facts[column] for column in _SHORT))
    return Group(table, lines(f"{report.number}: {report.reason}" for report in reports))


def checkpoints_table(reports: Sequence[CheckpointReport]) -> RenderableType:
    """A checkpoint per line, the oldest first, and why one failed, or what it waits for."""
    numbers = ("seconds", "keys", "bytes saved", "bytes of state")
    table = DataTable("no.", "state", *numbers, right=("no.", *numbers), title="checkpoints")
    for report in reports:
        taken = "-" if report.seconds is None else f"{report.seconds:.3f}"
        figures = f"{report.keys:,}", f"{report.saved_bytes:,}", f"{report.state_bytes:,}"
        table.row(str(report.number), report.state.value, taken, *figures)
    return Group(table, lines(str(report) for report in reports if report.problem is not None or report.waits_for))


def migration_table(report: MigrationReport) -> Table:
    """One migration, a fact per line."""
    table = DataTable("migration", str(report.number))
    for name, value in migration_facts(report)[1:]:
        table.row(name, value)
    if report.plan is not None:
        plan = report.plan
        table.row("plan", f"imbalance {plan.imbalance_before:.2f} to {plan.imbalance_after:.2f}, floor {plan.floor:.2f}")
    return table


def migration_facts(report: MigrationReport) -> list[tuple[str, str]]:
    """Names and values of what a migration's report says."""
    latency = "-" if report.latency_ms is None else f"{report.latency_ms[0]:.1f}/{report.latency_ms[1]:.1f}"
    steps = f"{report.steps}" if report.state is MigrationState.DONE else f"{report.steps_done} of {report.steps}"
    return [
        ("no.", str(report.number)),
        ("operator", report.operator),
        ("strategy", report.strategy),
        ("state", report.state.value),
        ("steps", steps),
        ("groups", str(report.groups)),
        ("routes", str(report.routed_keys)),
        ("keys moved", f"{report.keys_moved:,}"),
        ("bytes", f"{report.state_bytes:,}"),
        ("seconds", "-" if report.seconds is None else f"{report.seconds:.3f}"),
        ("p50/p99 ms", latency),
        ("why", report.reason),
    ]


def _groups_and_keys(load: OperatorLoad) -> RenderableType:
    hottest = sorted(load.groups.items(), key=lambda item: -item[1])[:MOST_GROUPS]
    groups = ", ".join(f"{group} {useful:.1%}" for group, useful in hottest) or "-"
    return lines((f" hottest groups {groups}", f" hottest keys   {keys_of(load) or '-'}"))
