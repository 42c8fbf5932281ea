"""The commands for the code of running jobs: upgrade, upgrades."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_job

if TYPE_CHECKING:
    from ..job import Job
    from ..scheduler.protocol.reports import UpgradeReport


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the job, and for an upgrade the program and the way in which its code comes."""
    add_job(parser)
    if name == "upgrades":
        return
    parser.add_argument("program", type=Path, nargs="?", metavar="FILE.py", help="the new version of the job's program")
    parser.add_argument("--canary", type=share, metavar="5%", default=0.05, help="share of the load that gets it first (default: 5%%)")
    parser.add_argument("--watch", metavar="TIME", default="2m", help="time for which both run side by side (default: %(default)s)")
    parser.add_argument("--max-errors", type=int, metavar="N", default=0, help="refused records beyond the old code's (default: 0)")
    parser.add_argument("--max-slowdown", type=float, metavar="X", default=2.0, help="times as long for a record (default: %(default)s)")
    parser.add_argument("--on-failure", choices=("rollback", "continue"), default="rollback", help="%(choices)s (default: %(default)s)")
    parser.add_argument("--everything", action="store_true", help="take the code of all operators as changed, such as for a new library")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    way.add_argument("--now", action="store_true", help="exchange all code at once, without a canary")
    way.add_argument("--abort", action="store_true", help="take the new code of the upgrade under way back")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen command. Raises JobNotRunningError if no such job runs, RequestError for an impossible request."""
    from .. import connect

    if arguments.command == "upgrades":
        from ..terminal.console import console
        from ..terminal.reports import upgrades_table

        console().print(upgrades_table(connect(arguments.job).upgrades()))
        return 0
    if arguments.program is None and not arguments.abort:
        arguments.usage_error("name the new program, FILE.py, or say --abort")
    job = connect(arguments.job)
    if arguments.abort:
        job.abort_upgrade()
        return 0
    return _upgrade(job, arguments)


def _upgrade(job: Job, arguments: argparse.Namespace) -> int:
    from ..program import flow_of
    from ..terminal.console import console
    from ..terminal.reports import versions_table

    flow = flow_of(arguments.program, job.name)
    if arguments.dry_run:
        changes = job.plan_upgrade(flow, everything=arguments.everything)
        console().print(str(changes))
        return 1 if changes.needs_restart else 0
    told: list[str] = []

    def tell(report: UpgradeReport) -> None:
        if report.state.value not in told[-1:]:
            told.append(report.state.value)
            console().print(f"upgrade {report.number} to version {report.version}: {report.state.value}")

    report = job.upgrade(
        flow,
        canary=0.0 if arguments.now else arguments.canary,
        watch=arguments.watch,
        max_errors=arguments.max_errors,
        max_slowdown=arguments.max_slowdown,
        on_failure=arguments.on_failure,
        everything=arguments.everything,
        seen=tell,
    )
    if report is None:
        console().print("nothing has changed")
        return 0
    if report.compared:
        console().print(versions_table(report.compared))
    console().print(str(report))
    return 0


def share(text: str) -> float:
    """Parse a share of one, such as `5%` or `0.05`. Raises argparse.ArgumentTypeError for another text.

    >>> share("5%"), share("0.05")
    (0.05, 0.05)
    """
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: expected something like 5% or 0.05") from error
