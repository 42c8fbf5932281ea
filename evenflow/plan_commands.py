"""`evenflow plan balance`: what a balancer would do with a load snapshot, as JSON, without a cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .balancer.base import ANY_STATE, Limits
from .balancer.policies import POLICIES, named
from .balancer.snapshot_json import snapshot_from_json
from .engine.errors import ConnectorError


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """What can be planned, and each plan's arguments."""
    plans = parser.add_subparsers(dest="plan", metavar="PLAN", required=True)
    text = "which key groups and hot keys should change their worker"
    balance = plans.add_parser("balance", help=text, description=f"{text.capitalize()}: prints the plan as JSON.")
    balance.add_argument("--snapshot", metavar="FILE", required=True, help="the load snapshot as JSON; - reads it from standard input")
    balance.add_argument("--policy", metavar="NAME", default=next(iter(POLICIES)), help=f"{', '.join(POLICIES)} (default: %(default)s)")
    tolerance = "good enough is max / mean load within this multiple of the floor (default: %(default)s)"
    balance.add_argument("--tolerance", type=float, default=ANY_STATE.tolerance, help=tolerance)
    balance.add_argument("--max-bytes", type=int, metavar="BYTES", help="most state to move (default: any)")


def run(arguments: argparse.Namespace) -> int:
    """Print the plan. Raises FlowError for a snapshot, a policy or a limit that can't be, ConnectorError for a file that can't be read."""
    policy, limits = named(arguments.policy), Limits(arguments.tolerance, arguments.max_bytes)
    plan = policy.plan(snapshot_from_json(_read(arguments.snapshot)), limits)
    print(plan.to_json())  # noqa: T201 -- JSON for another program: rich would wrap it
    return 0


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConnectorError(f"the load snapshot {path} can't be read: {error}") from error
