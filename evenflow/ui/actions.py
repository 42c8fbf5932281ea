"""What a page may ask of a job if it was allowed to: the request, checked, and what it would do, before anybody says yes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from ..balancer.base import Limits
from ..balancer.policies import named
from ..cli.balance import key_of, ranges
from ..engine.errors import RequestError
from ..engine.protocol.ids import WorkerId
from ..recording.seen import Seen
from ..scheduler.load.load_snapshot import hash_of
from ..scheduler.policies.nodes.node_plans import NodePlan
from ..scheduler.policies.nodes.placement import short
from ..scheduler.protocol.requests import Move, Rebalance, Scale, ScaleIn, ScaleOut, Stop, TakeCheckpoint, TakeSavepoint
from ..scheduler.protocol.view import StageView
from .asked import Answer, plan_facts

SAMPLED_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """Look at the stacks of a worker's process for a while. The job is not asked: its process is."""

    worker: WorkerId


Action = Rebalance | Move | Scale | ScaleOut | ScaleIn | TakeCheckpoint | TakeSavepoint | Stop | Sample
"""What can be asked for."""

Body = Mapping[str, Any]


def request_of(seen: Seen, body: Body) -> Action:  # noqa: C901 -- a line for each kind
    """The request that a page sent. Raises RequestError, naming the field, for one that can't be."""
    action = body.get("action")
    match action:
        case "rebalance":
            return Rebalance(_operator(seen, body), _text(body, "policy"))
        case "migrate":
            return _move(seen, body)
        case "scale":
            return Scale(_operator(seen, body, keyed=False), _whole(body, "workers", least=1))
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
            return _sample(seen, body)
    raise RequestError(f"{action!r:.50} is nothing that a page can ask for")


def previewed(seen: Seen, body: Body) -> Callable[[], Answer]:
    """What the request would do, as work for a thread: `text`, and the `plan` of a rebalance. Raises RequestError as `request_of`."""
    request = request_of(seen, body)
    match request:
        case Rebalance(operator, policy):
            load, balancer, limits = seen.load(operator), named(policy), Limits(split_keys=seen.view.split_hot_keys)
            return lambda: {"plan": plan_facts(balancer.plan(load, limits), load)}
        case Move(operator, groups, keys, to, _):
            text = _moved(seen.stage_of(operator), groups, keys, to)
        case Scale(operator, workers):
            text = _scaled(_stage(seen, operator), workers)
        case ScaleOut(nodes, policy):
            text = _nodes_changed(seen.placed().more_nodes(nodes, policy))
        case ScaleIn(policy):
            text = _nodes_changed(seen.placed().one_node_less(None, policy))
        case TakeCheckpoint():
            text = f"The job saves its state and commits what its sinks have written. {_last_checkpoint(seen)}"
        case TakeSavepoint(path):
            text = f"The job's whole state is saved into {path}, a folder that every node of the cluster must reach; the job runs on."
        case Stop(drain):
            rest = (
                "Open windows and timers fire, and" if drain else "Open windows and timers don't fire: a last checkpoint keeps them. Then"
            )
            text = f"The sources read no more; what they have read is processed and committed. {rest} the job is over."
        case Sample(worker):
            text = f"py-spy looks at the stacks of {worker}'s process for {SAMPLED_SECONDS} s, and stops it a moment for each look."
        case _:
            assert_never(request)
    return lambda: {"text": text}


def begun(request: Action, number: int | None) -> str:
    """What has begun, in words; `number`: what the coordinator has answered."""
    match request:
        case Rebalance() | Move():
            return f"Migration {number} has begun."
        case Scale():
            return f"Scaling {number} has begun."
        case ScaleOut() | ScaleIn():
            return f"Node scaling {number} has begun."
        case TakeCheckpoint():
            return f"Checkpoint {number} was asked for."
        case TakeSavepoint(path):
            return f"Checkpoint {number} was asked for; it will be copied into {path}."
        case Stop():
            return "The job is stopping."
        case Sample(worker):
            return f"Where {worker} has spent {SAMPLED_SECONDS} s:"
    assert_never(request)


def _operator(seen: Seen, body: Body, *, keyed: bool = True) -> str:
    operator = _text(body, "operator")
    return seen.stage_of(operator).name if keyed else _stage(seen, operator).name


def _stage(seen: Seen, operator: str) -> StageView:
    found = next((stage for stage in seen.view.stages if stage.name == operator), None)
    if found is None:
        raise RequestError(f"the job has no operator `{operator}`; there are: {', '.join(stage.name for stage in seen.view.stages)}")
    return found


def _move(seen: Seen, body: Body) -> Move:
    stage = seen.stage_of(_text(body, "operator"))
    assert stage.table is not None
    written, named_keys = body.get("groups") or "", body.get("keys") or ""
    try:
        groups = ranges(written) if written else ()
    except (argparse.ArgumentTypeError, AttributeError) as error:
        raise RequestError(f"groups is {written!r:.50}: it must be like 0-99,120") from error
    keys = tuple(key_of(word) for word in str(named_keys).split())
    if not groups and not keys:
        raise RequestError("name what to move: key groups like 0-99,120, or keys")
    wrong = [group for group in groups if group >= len(stage.table)]
    if wrong:
        raise RequestError(f"`{stage.name}` has no key group {wrong[0]}: its groups are 0 to {len(stage.table) - 1}")
    to = _whole(body, "to", least=0)
    if to >= len(stage.workers):
        raise RequestError(f"`{stage.name}` has no worker {to}: its workers are 0 to {len(stage.workers) - 1}")
    return Move(stage.name, groups, keys, to)


def _sample(seen: Seen, body: Body) -> Sample:
    worker = _text(body, "worker")
    there = [one for stage in seen.view.stages for one in stage.workers]
    if worker not in there:
        raise RequestError(f"the job has no worker `{worker}`; there are: {', '.join(there)}")
    return Sample(WorkerId(worker))


def _moved(stage: StageView, groups: tuple[int, ...], keys: tuple[Any, ...], to: int) -> str:
    assert stage.table is not None
    hashes = np.array([hash_of(key) for key in keys], np.uint64)
    owners = [*stage.table.groups[list(groups)].tolist(), *stage.table.owners(hashes).tolist()]
    sources = [f"{owners.count(worker)} from {stage.name}-{worker}" for worker in sorted(set(owners) - {to})]
    there = f"; {owners.count(to)} are there already" if to in owners else ""
    moving = f"{len(groups)} key groups and {len(keys)} single keys"
    return f"Of {moving}, these go to {stage.name}-{to} while the stream goes on: {', '.join(sources) or 'none'}{there}."


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


def _nodes_changed(plan: NodePlan) -> str:
    what = f"Gives node {short(plan.removed)} back" if plan.removed is not None else f"Uses node {', '.join(map(short, plan.added))} too"
    changes = [f"{operator} goes from {before} to {after} workers" for operator, (before, after) in plan.parallelism.items()]
    replaced = [f"{', '.join(plan.replaced)} go on in processes on other nodes, from a checkpoint"] if plan.replaced else []
    return f"{what}: {'; '.join([*changes, *replaced]) or 'no worker changes'}. Why: {plan.reason}."


def _last_checkpoint(seen: Seen) -> str:
    completed = seen.view.status.completed_checkpoints
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
