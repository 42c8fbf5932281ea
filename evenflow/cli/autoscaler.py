"""The commands for automatic scaling of running jobs: decisions, autoscaler."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..engine.errors import RequestError
from .arguments import Names, add_job

if TYPE_CHECKING:
    from ..job import Job

POLICIES = Names("scheduler.policies.registry:POLICIES", "off")
MODES = Names("scheduler.policies.controller:MODES")


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add one job, and the command's own arguments."""
    add_job(parser)
    if name == "decisions":
        parser.add_argument("--json", action="store_true", help="one decision per line, as JSON")
        parser.add_argument("--seen", type=int, metavar="N", help="the snapshot behind decision N, for `evenflow plan scale`")
    if name == "autoscaler":
        parser.add_argument("policy", choices=POLICIES, metavar="POLICY", help="%(choices)s")
        parser.add_argument(
            "--mode",
            choices=MODES,
            metavar="MODE",
            default="advise",
            help="act, or advise (only record and show decisions); default: %(default)s",
        )


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen command. Raises JobNotRunningError if no such job runs, RequestError for an impossible request."""
    from .. import connect

    actions: dict[str, Callable[[Job, argparse.Namespace], None]] = {"decisions": show_decisions, "autoscaler": set_autoscaler}
    actions[arguments.command](connect(arguments.job), arguments)
    return 0


def show_decisions(job: Job, arguments: argparse.Namespace) -> None:
    """Show all decisions of a job, or the snapshot behind one. Raises RequestError for an unknown number."""
    from ..scheduler.policies.dataflow.snapshot_json import snapshot_to_json
    from ..terminal.console import console
    from ..terminal.reports import decisions_table

    decisions = job.decisions()
    if arguments.seen is not None:
        if not 0 <= arguments.seen < len(decisions):
            raise RequestError(f"job `{arguments.job}` has no decision {arguments.seen}: it has {len(decisions)}, numbered from 0")
        print(snapshot_to_json(decisions[arguments.seen].seen))  # noqa: T201 -- JSON for another program: rich would wrap it
    elif arguments.json:
        for record in decisions:
            print(json.dumps(record.to_dict()))  # noqa: T201 -- as above
    else:
        console().print(decisions_table(decisions))


def set_autoscaler(job: Job, arguments: argparse.Namespace) -> None:
    """Switch automatic scaling of a job."""
    from ..terminal.console import console

    job.autoscaler(arguments.policy, mode=arguments.mode)
    by = (
        f"scaled by {arguments.policy}"
        if arguments.mode == "act"
        else f"watched by {arguments.policy}, which only advises (--mode act carries it out),"
    )
    console().print(f"{arguments.job} is no longer scaled" if arguments.policy == "off" else f"{arguments.job} is {by} from now on")
