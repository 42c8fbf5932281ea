"""Actions of a page on a job: checks the request, and describes its effect before the user confirms it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from ..balancer.base import Limits
from ..balancer.policies import named
from ..building.requests import parse_groups, parse_key
from ..engine.errors import RequestError
from ..engine.protocol.ids import WorkerId
from ..scheduler.load.load_snapshot import hash_of
from ..scheduler.policies.nodes.node_plans import NodePlan, PlacedJob, TooFewNodesError
from ..scheduler.policies.nodes.placement import short
from ..scheduler.protocol.requests import MoveKeys, Rebalance, Scale, ScaleIn, ScaleOut, Stop, TakeCheckpoint, TakeSavepoint
from ..scheduler.protocol.view import StageView
from ..views.policy_snapshots import PolicySnapshots
from .queries import Answer, plan_facts

SAMPLED_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """A request to sample the stacks of a worker's process. The process answers, not the job."""

    worker: WorkerId


Action = Rebalance | MoveKeys | Scale | ScaleOut | ScaleIn | TakeCheckpoint | TakeSavepoint | Stop | Sample
"""The actions that a page can request."""

Body = Mapping[str, Any]


def request_of(snapshots: PolicySnapshots, body: Body) -> Action:  # noqa: C901 -- a line for each kind
    """Parse the request that a page sent. Raises RequestError, naming the field, for an impossible one."""
    action = body.get("action")
    match action:
        case "rebalance":
            return Rebalance(_operator(snapshots, body), _text(body, "policy"))
        case "migrate":
            return _move(snapshots, body)
        case "scale":
            return Scale(_operator(snapshots, body, keyed=False), _whole(body, "workers", least=1))
        case "add_nodes":
            return ScaleOut(_whole(body, "nodes", least=1))
        case "give_back":
            return ScaleIn()
        case "checkpoint":
            return TakeCheckpoint()
        case "savepoint":
            path = _text(body, "path")
            return TakeSavepoint(path if "://" in path else str(Path(path).absolute()))
        case "stop":
            return Stop()
        case "drain":
            return Stop(drain=True)
        case "sample":
            return _sample(snapshots, body)
    raise RequestError(f"{action!r:.50} is no action of a page")


def previewed(snapshots: PolicySnapshots, body: Body) -> Callable[[], Answer]:
    """Return work for a thread that describes the effect of a request: `text`, and the `plan` of a rebalance.

    Raises RequestError as `request_of` does.
    """
    request = request_of(snapshots, body)
    match request:
        case Rebalance(operator, policy):
            load, balancer, limits = snapshots.load(operator), named(policy), Limits(split_keys=snapshots.view.split_hot_keys)
            return lambda: {"plan": plan_facts(balancer.plan(load, limits), load)}
        case MoveKeys(operator, groups, keys, to, _):
            text = _moved(snapshots.keyed_stage(operator), groups, keys, to)
        case Scale(operator, workers):
            text = _scaled(_stage(snapshots, operator), workers)
        case ScaleOut(nodes, policy):
            text = _more_nodes(snapshots.placed(), nodes, policy)
        case ScaleIn(policy):
            text = _nodes_changed(snapshots.placed().one_node_less(None, policy))
        case TakeCheckpoint():
            text = f"The job saves its state and commits what its sinks have written. {_last_checkpoint(snapshots)}"
        case TakeSavepoint(path):
            text = f"The job's whole state is saved into {path}, a folder that every node of the cluster must reach; the job continues."
        case Stop(drain):
            rest = (
                "Open windows and timers fire, and" if drain else "Open windows and timers don't fire: a last checkpoint keeps them. Then"
            )
            text = f"The sources stop reading; records that they have read are processed and committed. {rest} the job ends."
        case Sample(worker):
            text = f"py-spy samples the stacks of {worker}'s process for {SAMPLED_SECONDS} s, and stops it a moment for each sample."
        case _:
            assert_never(request)
    return lambda: {"text": text}


def begun(request: Action, number: int | None) -> str:
    """Describe the operation that has begun; `number` is the coordinator's answer."""
    match request:
        case Rebalance() | MoveKeys():
            return f"Migration {number} has begun."
        case Scale():
            return f"Scaling {number} has begun."
        case ScaleOut() | ScaleIn():
            return f"Node scaling {number} has begun."
        case TakeCheckpoint():
            return f"Checkpoint {number} is requested."
        case TakeSavepoint(path):
            return f"Checkpoint {number} is requested; it will be copied into {path}."
        case Stop():
            return "The job is stopping."
        case Sample(worker):
            return f"Time of {worker} in {SAMPLED_SECONDS} s:"
    assert_never(request)


def _operator(snapshots: PolicySnapshots, body: Body, *, keyed: bool = True) -> str:
    operator = _text(body, "operator")
    return snapshots.keyed_stage(operator).name if keyed else _stage(snapshots, operator).name


def _stage(snapshots: PolicySnapshots, operator: str) -> StageView:
    found = next((stage for stage in snapshots.view.stages if stage.name == operator), None)
    if found is None:
        raise RequestError(f"the job has no operator `{operator}`; there are: {', '.join(stage.name for stage in snapshots.view.stages)}")
    return found


def _move(snapshots: PolicySnapshots, body: Body) -> MoveKeys:
    stage = snapshots.keyed_stage(_text(body, "operator"))
    assert stage.table is not None
    written, words = body.get("groups") or "", body.get("keys") or ""
    groups = parse_groups(written) if written else ()
    keys = tuple(parse_key(word) for word in str(words).split())
    if not groups and not keys:
        raise RequestError("name what to move: key groups like 0-99,120, or keys")
    wrong = [group for group in groups if group >= len(stage.table)]
    if wrong:
        raise RequestError(f"`{stage.name}` has no key group {wrong[0]}: its groups are 0 to {len(stage.table) - 1}")
    to = _whole(body, "to", least=0)
    if to >= len(stage.workers):
        raise RequestError(f"`{stage.name}` has no worker {to}: its workers are 0 to {len(stage.workers) - 1}")
    return MoveKeys(stage.name, groups, keys, to)


def _sample(snapshots: PolicySnapshots, body: Body) -> Sample:
    worker = _text(body, "worker")
    workers = [one for stage in snapshots.view.stages for one in stage.workers]
    if worker not in workers:
        raise RequestError(f"the job has no worker `{worker}`; there are: {', '.join(workers)}")
    return Sample(WorkerId(worker))


def _moved(stage: StageView, groups: tuple[int, ...], keys: tuple[Any, ...], to: int) -> str:
    assert stage.table is not None
    hashes = np.array([hash_of(key) for key in keys], np.uint64)
    owners = [*stage.table.groups[list(groups)].tolist(), *stage.table.owners(hashes).tolist()]
    sources = [f"{owners.count(worker)} from {stage.workers[worker]}" for worker in sorted(set(owners) - {to})]
    there = f"; {owners.count(to)} are already there" if to in owners else ""
    moving = f"{len(groups)} key groups and {len(keys)} single keys"
    return f"Of {moving}, these go to {stage.workers[to]} while the stream continues: {', '.join(sources) or 'none'}{there}."


def _scaled(stage: StageView, workers: int) -> str:
    before = len(stage.workers)
    if workers == before:
        return f"{stage.name} has {before} workers: nothing would change."
    if stage.scaled is not None and stage.scaled.fixed:
        return f"{stage.name} can't be scaled: its number of workers is fixed."
    if stage.table is None:
        return f"{stage.name} goes from {before} to {workers} workers; it has no keyed state to move."
    if workers > before:
        return f"{stage.name} goes from {before} to {workers} workers: they start, then key groups move to them as the balancer plans."
    leaving = int((stage.table.groups >= workers).sum())
    return f"{stage.name} goes from {before} to {workers} workers: {leaving} key groups of those that leave move to the others first."


def _more_nodes(placed: PlacedJob, nodes: int, policy: str) -> str:
    try:
        return _nodes_changed(placed.more_nodes(nodes, policy))
    except TooFewNodesError as error:
        if not placed.cpus:
            raise
        return f"{error}. The job asks Ray's autoscaler, if there is one, and waits for them."


def _nodes_changed(plan: NodePlan) -> str:
    what = f"Gives back node {short(plan.removed)}" if plan.removed is not None else f"Adds node {', '.join(map(short, plan.added))}"
    changes = [f"{operator} goes from {before} to {after} workers" for operator, (before, after) in plan.parallelism.items()]
    replaced = [f"{', '.join(plan.replaced)} continue on other nodes, from a checkpoint"] if plan.replaced else []
    return f"{what}: {'; '.join([*changes, *replaced]) or 'no worker changes'}. Why: {plan.reason}."


def _last_checkpoint(snapshots: PolicySnapshots) -> str:
    completed = snapshots.view.status.completed_checkpoints
    return f"It has completed {completed} checkpoints so far."


def _text(body: Body, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RequestError(f"{name} is missing")
    return value.strip()


def _whole(body: Body, name: str, least: int) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise RequestError(f"{name} is {value!r:.50}: it must be a whole number, {least} or more")
    return value
