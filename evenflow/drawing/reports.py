"""What all tables of reports show in the same way: when something began, how long it took, and why."""

from __future__ import annotations

from datetime import UTC, datetime

from ..scheduler.protocol.reports import OperationReport


def clock(at: float | None) -> str:
    """A time of day in this machine's zone, of seconds since the epoch; `-` for none."""
    return "-" if at is None else f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"


def taken(report: OperationReport) -> str:
    """The seconds that it took; `-` while it is not over."""
    return "-" if report.seconds is None else f"{report.seconds:.3f}"


def story(report: OperationReport) -> str:
    """A line below the table: when it began, why, and its problem."""
    return f"{report.number}: {clock(report.began_at)} {report.why}"
