"""The commands for the load of running jobs: load, snapshot, rebalance, migrate, migrations, balancer."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..building.requests import parse_groups, parse_key
from ..engine.errors import ConnectorError, RequestError
from .arguments import Names, add_job, add_waiting

if TYPE_CHECKING:
    from ..job import Job

POLICIES = "balancer.policies:POLICIES"


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add one job, one of its operators for all commands but `migrations`, and the command's own arguments."""
    add_job(parser)
    if name == "migrations":
        return
    parser.add_argument("operator", metavar="OPERATOR", help="an operator of the job, for example aggregate")
    if name == "load":
        parser.add_argument("--windows", type=int, metavar="N", help="only the newest N windows (default: all that the job keeps)")
    if name == "snapshot":
        parser.add_argument("--output", type=Path, metavar="FILE", help="the file to write (default: standard output)")
    if name == "balancer":
        parser.add_argument("policy", choices=Names(POLICIES, "off"), metavar="POLICY", help="%(choices)s")
    if name == "rebalance":
        parser.add_argument(
            "--policy", choices=Names(POLICIES), metavar="NAME", default="hotspot", help="%(choices)s (default: %(default)s)"
        )
    if name in ("rebalance", "migrate"):
        add_waiting(parser, "60s")
    if name == "migrate":
        parser.add_argument("--groups", type=key_groups, default=(), metavar="0-99,120", help="key groups")
        parser.add_argument("--keys", type=parse_key, nargs="+", default=(), metavar="KEY", help="keys; a JSON list for several columns")
        parser.add_argument("--to", type=int, required=True, metavar="N", help="the number of the worker that gets them")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen command. Raises JobNotRunningError if no such job runs, RequestError for an impossible request."""
    if arguments.command == "migrate" and not arguments.groups and not arguments.keys:
        arguments.usage_error("name what to move, with --groups 0-99,120 or --keys JFK LAX")
    from .. import connect

    actions: dict[str, Callable[[Job, argparse.Namespace], None]] = {
        "load": show_load, "snapshot": write_snapshot, "rebalance": rebalance, "migrate": migrate,
        "migrations": show_migrations, "balancer": set_balancer,
    }  # fmt: skip
    actions[arguments.command](connect(arguments.job), arguments)
    return 0


def show_load(job: Job, arguments: argparse.Namespace) -> None:
    """Show an operator's load by worker, key group and key."""
    from ..terminal.console import console
    from ..terminal.metrics import load_table

    windows = {} if arguments.windows is None else {"windows": arguments.windows}
    console().print(load_table(job.load(arguments.operator, **windows)))


def write_snapshot(job: Job, arguments: argparse.Namespace) -> None:
    """Write the snapshot that `evenflow plan balance --snapshot` reads. Raises ConnectorError if the file can't be written."""
    from ..balancer.snapshot_json import snapshot_to_json
    from ..terminal.console import console

    text = snapshot_to_json(job.snapshot(arguments.operator))
    if arguments.output is None:
        print(text)  # noqa: T201 -- JSON for another program: rich would wrap it
        return
    try:
        arguments.output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ConnectorError(f"the load snapshot can't be written to {arguments.output}: {error}") from error
    console().print(f"wrote {arguments.output}; see the plan for it with: evenflow plan balance --snapshot {arguments.output}")


def rebalance(job: Job, arguments: argparse.Namespace) -> None:
    """Rebalance an operator, and show the report."""
    from ..terminal.console import console
    from ..terminal.reports import migration_table

    report = job.rebalance(arguments.operator, policy=arguments.policy, strategy=arguments.strategy, timeout=arguments.timeout)
    console().print(migration_table(report))


def migrate(job: Job, arguments: argparse.Namespace) -> None:
    """Move the given key groups or keys, and show the report."""
    from ..terminal.console import console
    from ..terminal.reports import migration_table

    report = job.migrate(
        arguments.operator, groups=arguments.groups, keys=arguments.keys, to=arguments.to, strategy=arguments.strategy,
        timeout=arguments.timeout,
    )  # fmt: skip
    console().print(migration_table(report))


def show_migrations(job: Job, _arguments: argparse.Namespace) -> None:
    """Show all migrations of a job."""
    from ..terminal.console import console
    from ..terminal.reports import migrations_table

    console().print(migrations_table(job.migrations()))


def set_balancer(job: Job, arguments: argparse.Namespace) -> None:
    """Switch automatic balancing of an operator."""
    from ..terminal.console import console

    job.balancer(arguments.operator, arguments.policy)
    done = "is no longer balanced" if arguments.policy == "off" else f"is balanced by {arguments.policy} from now on"
    console().print(f"{arguments.operator} of {arguments.job} {done}")


def key_groups(text: str) -> tuple[int, ...]:
    """Parse key groups. Raises argparse.ArgumentTypeError for another text."""
    try:
        return parse_groups(text)
    except RequestError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
