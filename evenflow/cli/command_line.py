"""The parser of all commands, and the module of each.

A command is a line in `COMMANDS` and two functions in its module: one adds its arguments, one runs it. The module is imported when the
command is used, and imports Ray, NumPy and rich when the command runs. So an error in the command line shows at once.

>>> parser_of("status").parse_args(["status", "delays"]).job
'delays'
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..state.errors import EvenflowError


@dataclass(frozen=True, slots=True)
class Command:
    """A command. Its `module` has `add_arguments(parser, name)` and `run(arguments) -> exit code`.

    `run` may call `arguments.usage_error(message)` for arguments that contradict each other, which ends the program with code 2.
    """

    module: str
    help: str


_JOBS = "evenflow.cli.jobs"
_BALANCE = "evenflow.cli.balance"
_SCALE = "evenflow.cli.scale"
_AUTOSCALER = "evenflow.cli.autoscaler"

COMMANDS = {
    "jobs": Command(_JOBS, "the running jobs of the cluster"),
    "status": Command(_JOBS, "a job's state, workers and checkpoints"),
    "metrics": Command(_JOBS, "figures of a job's workers: rows, shares of time, watermark, latency"),
    "checkpoints": Command("evenflow.cli.checkpoints", "a running job's checkpoints, or with --dir those in a folder or object store"),
    "stop": Command(_JOBS, "stop a job in order, at a last checkpoint: records that were read are processed and committed"),
    "cancel": Command(_JOBS, "end a job without processing the rest"),
    "top": Command("evenflow.cli.top", "live view of a job: rates, key groups, load against the floor, decisions"),
    "logs": Command("evenflow.cli.logs", "the output of a job's processes, on all nodes"),
    "ui": Command("evenflow.cli.ui", "live web page of jobs: key groups over time, load, decisions, the dataflow"),
    "record": Command("evenflow.cli.record", "record a job into a file, for `ui --replay` and for `plan`"),
    "read": Command("evenflow.cli.read", "a key of an operator's state, or all keys as of the newest checkpoint, as JSON"),
    "load": Command(_BALANCE, "an operator's load per worker, its hottest keys, its imbalance and the floor"),
    "snapshot": Command(_BALANCE, "an operator's load as balancers see it, as JSON"),
    "rebalance": Command(_BALANCE, "even out an operator's load while the stream runs"),
    "migrate": Command(_BALANCE, "move key groups or single keys to another worker while the stream runs"),
    "migrations": Command(_BALANCE, "a job's migrations: keys, reason, duration"),
    "balancer": Command(_BALANCE, "switch automatic balancing of an operator on or off"),
    "scale": Command(_SCALE, "change an operator's number of workers, or a job's nodes, while the stream runs"),
    "scalings": Command(_SCALE, "a job's scalings: workers, reason, duration"),
    "autoscaler": Command(_AUTOSCALER, "switch automatic scaling of a job on or off"),
    "reconfigure": Command("evenflow.cli.reconfigure", "change settings of a running job: balancing, checkpoints, linger, log level"),
    "decisions": Command(_AUTOSCALER, "a job's scaling decisions: change, reason, outcome"),
    "upgrade": Command("evenflow.cli.upgrade", "exchange a job's code for that of a new program while the stream runs"),
    "upgrades": Command("evenflow.cli.upgrade", "a job's upgrades: operators, outcome, old and new code side by side"),
    "plan": Command("evenflow.cli.plan", "a policy's plan for a snapshot or a time of a recording, without a cluster"),
    "grafana": Command("evenflow.cli.grafana", "write dashboards for Grafana, and alert rules and a configuration for Prometheus"),
    "k8s": Command("evenflow.cli.k8s", "a job on Kubernetes: its resources, a Helm chart, an image"),
    "sql": Command("evenflow.cli.sql", "run a script of SQL: CREATE TABLE, CREATE VIEW, INSERT INTO"),
    "doctor": Command("evenflow.cli.doctor", "check this machine for the requirements of jobs"),
    "bench": Command("evenflow.bench.command", "benchmarks: data, run, compare"),
}


class _Version(argparse.Action):
    """An action that looks up the version, shows it and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        try:
            print(f"evenflow {version('evenflow')}")  # noqa: T201 -- as argparse prints its help
        except PackageNotFoundError:
            parser.exit(1, "this evenflow is not installed, and has no version: pip install it\n")
        parser.exit()


def parser_of(chosen: str | None) -> argparse.ArgumentParser:
    """Make the parser of all commands; only `chosen` has its arguments."""
    parser = argparse.ArgumentParser(prog="evenflow", description="Stream dataflows on Ray. RAY_ADDRESS names the cluster.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=command.help, description=command.help)
        if name == chosen:
            one.set_defaults(usage_error=one.error)
            importlib.import_module(command.module).add_arguments(one, name)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0, 1 for an error of evenflow's own, 2 for a wrong command line, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if words is None else words)
    chosen = next((word for word in words if word in COMMANDS), None)
    arguments = parser_of(chosen).parse_args(words)
    try:
        code: int = importlib.import_module(COMMANDS[arguments.command].module).run(arguments)
    except EvenflowError as error:
        from ..terminal.console import complain

        complain(error)
        return 1
    except KeyboardInterrupt:
        return 130
    return code
