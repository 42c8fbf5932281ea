"""Queries of a page for details: the decision of each policy, and an operator's workers one by one.

The answers come from the views that the page's process has received; the job is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..balancer.base import Limits
from ..balancer.plan import BalancePlan
from ..balancer.policies import POLICIES as BALANCERS
from ..balancer.policies import named as balancer_named
from ..balancer.snapshot import LoadSnapshot
from ..scheduler.policies.base import ScalingPolicy, settled
from ..scheduler.policies.controller import DecisionRecord
from ..scheduler.policies.dataflow.snapshot import DataflowSnapshot
from ..scheduler.policies.registry import POLICIES
from ..state.errors import EvenflowError
from ..views.policy_snapshots import PolicySnapshots
from ..views.workers import workers_of

Answer = dict[str, Any]

MOVES = 6
"""Moves of a plan that are listed, those of most load first."""


def prepared(snapshots: PolicySnapshots, query: str, operator: str | None) -> Callable[[], Answer]:
    """Take the snapshots that a query needs; return the rest as work for a thread.

    The answer to an impossible query is its problem, in a sentence.
    """
    try:
        return QUERIES[query](snapshots, operator)
    except EvenflowError as error:
        problem = str(error)
        return lambda: {"problem": problem}


def _balancers(snapshots: PolicySnapshots, operator: str | None) -> Callable[[], Answer]:
    load, limits = snapshots.load(operator), Limits(split_keys=snapshots.view.split_hot_keys)
    return lambda: {"plans": [_balanced(name, load, limits) for name in BALANCERS]}


def _balanced(name: str, load: LoadSnapshot, limits: Limits) -> Answer:
    try:
        return {"policy": name, **plan_facts(balancer_named(name).plan(load, limits), load)}
    except EvenflowError as error:
        return {"policy": name, "problem": str(error)}


def plan_facts(plan: BalancePlan, load: LoadSnapshot) -> Answer:
    """Describe a plan for people: its sizes, its effect and its hottest moves."""
    hot = dict(zip(load.group_ids.tolist(), load.group_loads.tolist(), strict=True)) | {key.key: key.load for key in load.hot_keys}
    moves = sorted(plan.moves, key=lambda move: -hot.get(move.key if move.group is None else move.group, 0.0))
    groups = sum(move.group is not None for move in moves)
    named = [
        f"{'key ' + repr(move.key) if move.group is None else f'group {move.group}'} from {move.source} to {move.target}"
        for move in moves[:MOVES]
    ]
    splits = [f"key {split.key!r} over workers {', '.join(map(str, (split.home, *split.others)))}" for split in plan.splits]
    return {
        "before": round(plan.imbalance_before, 3),
        "after": round(plan.imbalance_after, 3),
        "floor": round(plan.floor, 3),
        "groups": groups,
        "keys": len(moves) - groups + len(plan.splits) + len(plan.gathers),
        "bytes": plan.state_bytes,
        "reason": plan.reason,
        "changes": plan.changes,
        "moves": [*splits, *named],
    }


def _scalers(snapshots: PolicySnapshots, _operator: str | None) -> Callable[[], Answer]:
    snapshot = snapshots.dataflow()
    policies = [snapshots.policy(name) for name in POLICIES]
    return lambda: {"plans": [_scaled(policy, snapshot) for policy in policies]}


def _scaled(policy: ScalingPolicy[Any], snapshot: DataflowSnapshot) -> Answer:
    try:
        decided = settled(policy, snapshot)
    except EvenflowError as error:
        return {"policy": policy.name, "problem": str(error)}
    record = DecisionRecord(snapshot.time, policy.name, snapshot, decided, "")
    return {"policy": policy.name, "changes": record.changes or "no change", "reason": decided.reason}


def _workers(snapshots: PolicySnapshots, operator: str | None) -> Callable[[], Answer]:
    answer = workers_of(snapshots, operator)
    return lambda: answer


QUERIES: Mapping[str, Callable[[PolicySnapshots, str | None], Callable[[], Answer]]] = {
    "balancers": _balancers, "scalers": _scalers, "workers": _workers,
}  # fmt: skip
"""Queries by their path."""
