"""The commands about the load of running jobs: load, snapshot, rebalance, migrate, migrations, balancer."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.errors import ConnectorError
from .arguments import Names, add_job, add_waiting

if TYPE_CHECKING:
    from ..job import Job

POLICIES = "scheduler.configs.balance:AUTOMATIC"


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """All commands take one job, and all but `migrations` one of its operators."""
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
        parser.add_argument("--groups", type=ranges, default=(), metavar="0-99,120", help="key groups")
        parser.add_argument("--keys", type=key_of, nargs="+", default=(), metavar="KEY", help="keys; a JSON list for several columns")
        parser.add_argument("--to", type=int, required=True, metavar="N", help="the number of the worker that gets them")


def run(arguments: argparse.Namespace) -> int:
    """Run the command that was chosen. Raises JobNotRunningError if no such job runs, RequestError for an impossible request."""
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
    from ..drawing.metrics import load_table
    from ..drawing.terminal import console

    windows = {} if arguments.windows is None else {"windows": arguments.windows}
    console().print(load_table(job.load(arguments.operator, **windows)))


def write_snapshot(job: Job, arguments: argparse.Namespace) -> None:
    """Write the snapshot that `evenflow plan balance --snapshot` reads. Raises ConnectorError if the file can't be written."""
    from ..balancer.snapshot_json import snapshot_to_json
    from ..drawing.terminal import console

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
    """Plan, move, and show the report."""
    from ..drawing.changes import migration_table
    from ..drawing.terminal import console

    report = job.rebalance(arguments.operator, policy=arguments.policy, strategy=arguments.strategy, timeout=arguments.timeout)
    console().print(migration_table(report))


def migrate(job: Job, arguments: argparse.Namespace) -> None:
    """Move the given key groups or keys."""
    from ..drawing.changes import migration_table
    from ..drawing.terminal import console

    report = job.migrate(
        arguments.operator, groups=arguments.groups, keys=arguments.keys, to=arguments.to, strategy=arguments.strategy,
        timeout=arguments.timeout,
    )  # fmt: skip
    console().print(migration_table(report))


def show_migrations(job: Job, _arguments: argparse.Namespace) -> None:
    """All migrations of a job."""
    from ..drawing.changes import migrations_table
    from ..drawing.terminal import console

    console().print(migrations_table(job.migrations()))


def set_balancer(job: Job, arguments: argparse.Namespace) -> None:
    """Switch automatic balancing of an operator."""
    from ..drawing.terminal import console

    job.balancer(arguments.operator, arguments.policy)
    done = "is no longer balanced" if arguments.policy == "off" else f"is balanced by {arguments.policy} from now on"
    console().print(f"{arguments.operator} of {arguments.job} {done}")


def ranges(text: str) -> tuple[int, ...]:
    """Numbers and ranges, both ends included. Raises argparse.ArgumentTypeError for anything else.

    >>> ranges("0-3,7")
    (0, 1, 2, 3, 7)
    """

    def numbers() -> Iterator[int]:
        for part in text.split(","):
            first, _, last = part.partition("-")
            yield from range(int(first), int(last or first) + 1)

    try:
        return tuple(numbers())
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 0-99,120") from error


def key_of(text: str) -> Any:
    """A key as the command line has it: JSON for numbers and for keys of several columns, else the text itself.

    >>> key_of("17"), key_of("JFK"), key_of('["JFK", 7]'), key_of('"17"')
    (17, 'JFK', ('JFK', 7), '17')
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value
