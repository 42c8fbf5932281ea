"""`evenflow plan balance` and `evenflow plan scale`: show a policy's plan for a snapshot, or for a time of a recording."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..balancer import policies as balancers
from ..balancer.base import ANY_STATE, Limits
from ..balancer.outside_json import shown
from ..balancer.snapshot import LoadSnapshot
from ..balancer.snapshot_json import snapshot_from_json as load_snapshot_from_json
from ..engine.errors import RequestError, SnapshotError
from ..recording.file import Recording
from ..recording.moment import ALL, recording_of, snapshots_at
from ..recording.whatif import moments, would_move, would_scale
from ..scheduler.policies import registry as scaling
from ..scheduler.policies.base import settled
from ..scheduler.policies.dataflow.snapshot_json import snapshot_from_json as dataflow_snapshot_from_json
from ..state.errors import EvenflowError
from ..terminal.console import complain, console


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the two kinds of plans, with their arguments."""
    plans = parser.add_subparsers(dest="plan", metavar="PLAN", required=True)
    balance = _plan(
        plans,
        "balance",
        "which key groups and hot keys should change their worker or be split",
        "load",
        balancers.POLICIES,
    )
    tolerance = "good enough is max / mean load within this multiple of the floor (default: %(default)s)"
    balance.add_argument("--tolerance", type=float, default=ANY_STATE.tolerance, help=tolerance)
    balance.add_argument("--max-bytes", type=int, metavar="BYTES", help="most state to move (default: any)")
    balance.add_argument("--whole-keys", action="store_true", help="split no hot key of a join over several workers, and gather none")
    balance.add_argument("--operator", metavar="NAME", help="of a recording, if several operators have keyed state")
    scale = _plan(plans, "scale", "how many workers every operator should have", "dataflow", scaling.POLICIES)
    setting = "a setting of the policy's own, such as min_change=2 or blacklist=5m; repeatable (default: as in the recorded job)"
    scale.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=setting)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan. For an impossible snapshot, policy or limit, print the reason in a line and return exit code 2."""
    try:
        if (recorded := recording_of(arguments.snapshot)) is not None and recorded[1] == ALL:
            _show_all(arguments, Recording(recorded[0]))
            return 0
        text = _scale(arguments) if arguments.plan == "scale" else _balance(arguments)
    except EvenflowError as error:
        complain(" ".join(str(error).split()))
        return 2
    print(text)  # noqa: T201 -- JSON for a program: rich would wrap it
    return 0


def _plan(
    plans: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, what: str, policies: Iterable[str]
) -> argparse.ArgumentParser:
    plan = plans.add_parser(name, help=text, description=f"{text.capitalize()}: prints the plan as JSON.")
    snapshot = (
        f"the {what} snapshot as JSON, - reads it from standard input; or RECORDING@TIME: seconds since it began, a clock time, "
        f"or `{ALL}` for a table of the policy's decisions over the whole recording"
    )
    plan.add_argument("--snapshot", metavar="FILE", required=True, help=snapshot)
    names = list(policies)
    plan.add_argument("--policy", metavar="NAME", default=names[0], help=f"{', '.join(names)} (default: %(default)s)")
    return plan


def _balance(arguments: argparse.Namespace) -> str:
    policy = balancers.named(arguments.policy)
    limits = Limits(arguments.tolerance, arguments.max_bytes, split_keys=not arguments.whole_keys)
    return policy.plan(_load(arguments.snapshot, arguments.operator), limits).to_json()


def _scale(arguments: argparse.Namespace) -> str:
    own = _own_settings(arguments.set)
    if (recorded := recording_of(arguments.snapshot)) is not None:
        snapshots = snapshots_at(Recording(recorded[0]), recorded[1])
        return settled(snapshots.policy(arguments.policy, own), snapshots.dataflow()).to_json()
    policy = scaling.named(arguments.policy, **own)
    return settled(policy, dataflow_snapshot_from_json(_read(arguments.snapshot, "dataflow"))).to_json()


def _own_settings(words: Iterable[str]) -> dict[str, int | float | str]:
    """Parse `NAME=VALUE` for each setting: a number, or a text such as a duration. Raises RequestError for another form."""
    found: dict[str, int | float | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise RequestError(f"--set {shown(word)}: write NAME=VALUE, for example --set min_change=2")
        found[name] = _number(value)
    return found


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _load(path: str, operator: str | None) -> LoadSnapshot:
    if (recorded := recording_of(path)) is not None:
        return snapshots_at(Recording(recorded[0]), recorded[1]).load(operator)
    return load_snapshot_from_json(_read(path, "load"))


def _show_all(arguments: argparse.Namespace, recording: Recording) -> None:
    """Show the table over the whole recording."""
    from ..terminal.whatif import would_move_table, would_scale_table

    policy, began = arguments.policy, recording.began
    if arguments.plan == "scale":
        console().print(would_scale_table(would_scale(recording.views(), policy, _own_settings(arguments.set)), policy, began))
    else:
        times = moments(began, recording.ended)
        console().print(would_move_table(would_move(recording.views(), times, policy, arguments.operator), policy, began))


def _read(path: str, what: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SnapshotError(f"the {what} snapshot {path} can't be read: {error}") from error
