"""The parser of all commands, and the module of each.

A command is a line in `GROUPS` and two functions in its module: one adds its arguments, one runs it. The module is imported when the
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
    """A command. Its `module` has `add_arguments(parser, name)` and `run(arguments) -> exit code`. `help` is its line in the list of
    commands; `extra` is the extra of evenflow that installs what the module imports, if there is one.

    `run` may call `arguments.usage_error(message)` for arguments that contradict each other, which ends the program with code 2.
    """

    module: str
    help: str
    extra: str = ""


_JOBS = "evenflow.cli.jobs"
_BALANCE = "evenflow.cli.balance"
_SCALE = "evenflow.cli.scale"
_AUTOSCALER = "evenflow.cli.autoscaler"
_UPGRADE = "evenflow.cli.upgrade"

GROUPS = {
    "run and check": {
        "sql": Command("evenflow.cli.sql", "run a script of SQL: CREATE TABLE, INSERT INTO"),
        "doctor": Command("evenflow.cli.doctor", "check this machine for the requirements of jobs"),
        "plan": Command("evenflow.cli.plan", "a policy's plan for a recorded job, without a cluster"),
    },
    "watch": {
        "jobs": Command(_JOBS, "the running jobs of the cluster"),
        "status": Command(_JOBS, "a job's state, workers and checkpoints"),
        "top": Command("evenflow.cli.top", "live view of a job: rates, key groups, load, decisions"),
        "ui": Command("evenflow.cli.ui", "live web page of jobs: key groups, load, the dataflow"),
        "metrics": Command(_JOBS, "rows, shares of time, watermark, latency of workers"),
        "logs": Command("evenflow.cli.logs", "the output of a job's processes, on all nodes"),
        "load": Command(_BALANCE, "an operator's load per worker, hottest keys, the floor"),
        "snapshot": Command(_BALANCE, "an operator's load as balancers see it, as JSON"),
        "migrations": Command(_BALANCE, "a job's migrations: keys, reason, duration"),
        "scalings": Command(_SCALE, "a job's scalings: workers, reason, duration"),
        "decisions": Command(_AUTOSCALER, "a job's scaling decisions: change, reason, outcome"),
        "upgrades": Command(_UPGRADE, "a job's upgrades: operators, outcome, old and new code"),
        "record": Command("evenflow.cli.record", "record a job into a file, for `ui --replay` and `plan`"),
        "grafana": Command("evenflow.cli.grafana", "write Grafana dashboards, and Prometheus alert rules"),
    },
    "steer a running job": {
        "stop": Command(_JOBS, "end a job: commit all that was read, at a checkpoint"),
        "cancel": Command(_JOBS, "end a job without processing the rest"),
        "rebalance": Command(_BALANCE, "even out an operator's load"),
        "migrate": Command(_BALANCE, "move key groups or single keys to another worker"),
        "balancer": Command(_BALANCE, "switch automatic balancing of an operator on or off"),
        "scale": Command(_SCALE, "change an operator's workers, or a job's nodes"),
        "autoscaler": Command(_AUTOSCALER, "switch automatic scaling of a job on or off"),
        "reconfigure": Command("evenflow.cli.reconfigure", "change settings: balancing, checkpoints, linger, logs"),
        "upgrade": Command(_UPGRADE, "exchange a job's code for that of a new program"),
    },
    "state": {
        "checkpoints": Command("evenflow.cli.checkpoints", "checkpoints of a running job, or in a folder (--dir)"),
        "read": Command("evenflow.cli.read", "a key of an operator's state, or all keys, as JSON"),
    },
    "benchmarks": {
        "bench": Command("evenflow.bench.command", "data, run, check, compare", extra="bench"),
    },
    "deploy": {
        "k8s": Command("evenflow.cli.k8s", "a job on Kubernetes: resources, Helm chart, image"),
    },
}
"""The commands, by what one wants to do. Each is a line of `evenflow --help`, of at most 72 characters."""

COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}


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
    parser = argparse.ArgumentParser(
        prog="evenflow",
        usage="evenflow [-h] [--version] COMMAND ...",
        description="Stream dataflows on Ray. RAY_ADDRESS names the cluster.",
        epilog=_list_of_commands(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    # argparse can't list commands in groups: the epilog does.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="evenflow", help=argparse.SUPPRESS)
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, description=command.help)
        if name == chosen:
            one.set_defaults(usage_error=one.error)
            importlib.import_module(command.module).add_arguments(one, name)
    return parser


def _list_of_commands() -> str:
    width = max(map(len, COMMANDS))
    return "\n\n".join(
        "\n".join([f"{title}:", *(f"  {name:{width}}  {command.help}" for name, command in commands.items())])
        for title, commands in GROUPS.items()
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0, 1 for an error of evenflow's own, 2 for a wrong command line, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if words is None else words)
    chosen = next((word for word in words if word in COMMANDS), None)
    try:
        return _run(words, chosen)
    except EvenflowError as error:
        from ..terminal.console import complain

        complain(error)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(words: list[str], chosen: str | None) -> int:
    try:
        arguments = parser_of(chosen).parse_args(words)
        code: int = importlib.import_module(COMMANDS[arguments.command].module).run(arguments)
    except ModuleNotFoundError as error:
        extra = COMMANDS[chosen].extra if chosen else ""
        if not extra or (error.name or "").partition(".")[0] == "evenflow":
            raise
        raise EvenflowError(f"`evenflow {chosen}` needs the package {error.name}: pip install 'evenflow[{extra}]'") from error
    return code
