"""The plan of another number of workers for a stage of a running job: the tasks and channels to add and to remove.

Workers join and leave at the end of the stage's indexes. A new worker has channels from every upstream worker of its stage and to
every downstream worker. One with other code can also take the place of a worker, at its index: it has a channel for each of that worker's.
All other tasks and channels keep their names and numbers.

Invariant: the plan of a rescale is the complete new topology, so a job can be deployed from it at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import RequestError
from ..identity.identity import Identity
from ..operators.own_time import OwnTime
from ..operators.rows.broadcast import Broadcast
from ..protocol.ids import ChannelId, CodeVersion, WorkerId, WorkerNumber, code_of, worker_id
from ..protocol.routing import RoutingTable
from .channel_spec import ChannelSpec
from .physical import Plan, Stage
from .task_spec import ChainedOperator, ExchangeSpec, TaskSpec


@dataclass(frozen=True, slots=True)
class Rescale:
    """The change to `plan`: `joining` and `leaving` workers of `stage`, `opened` and `closed` channels.

    `replaces`: the closed channel whose place an opened one takes.
    """

    stage: str
    plan: Plan
    joining: tuple[WorkerId, ...]
    leaving: tuple[WorkerId, ...]
    opened: tuple[ChannelSpec, ...]
    closed: tuple[ChannelSpec, ...]
    replaces: Mapping[ChannelId, ChannelId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewCode:
    """The code of workers that join: its version, and the operators that they run, those of their stage in the same order.

    `environment`: of their processes, as Ray's `runtime_env`; None for the job's. `identities`: of the operators, by name.
    """

    version: CodeVersion
    chain: tuple[ChainedOperator, ...]
    environment: Mapping[str, Any] | None = None
    identities: Mapping[str, Identity] = field(default_factory=dict)


def rescale(plan: Plan, stage: Stage, parallelism: int, tables: Mapping[str, RoutingTable], code: NewCode | None = None) -> Rescale:
    """Return the change of a stage to another number of workers. `tables`: the current routing tables.

    `code`: of the workers that join, by default that of the stage's first worker; with it, there may be more workers than key groups,
    since old ones leave. Raises RequestError for an impossible number.
    """
    check_parallelism(plan, stage, parallelism, upgrading=code is not None)
    if parallelism >= stage.parallelism:
        return _grown(plan.with_tables(tables), stage, parallelism, code)
    return _shrunk(plan.with_tables(tables), stage, parallelism)


def replaced(plan: Plan, stage: Stage, indexes: Collection[int], tables: Mapping[str, RoutingTable], code: NewCode) -> Rescale:
    """Return the change in which workers with `code` take the places of the workers `indexes` of a stage, which own no keys."""
    names = {stage.workers[index]: worker_id(stage.name, index, code.version) for index in sorted(indexes)}
    closed = [channel for channel in plan.channels if channel.sender in names or channel.receiver in names]
    ids = {channel.id: ChannelId(plan.next_channel + place) for place, channel in enumerate(closed)}
    opened = [ChannelSpec(ids[c.id], names.get(c.sender, c.sender), names.get(c.receiver, c.receiver)) for c in closed]
    tasks: dict[WorkerId, TaskSpec] = {}
    for task in plan.with_tables(tables).tasks:
        rewired = replace(
            task,
            exchanges=tuple(replace(e, channels=tuple(ids.get(id_, id_) for id_ in e.channels)) for e in task.exchanges),
            inputs=tuple(ids.get(id_, id_) for id_ in task.inputs),
        )
        tasks[names.get(task.name, task.name)] = coded(rewired, code) if task.name in names else rewired
    codes = tuple(code.version if worker in names else code_of(worker) for worker in stage.workers)
    changed = replace(stage, codes=codes)
    change = _rescaled(plan, changed, tasks, list(names.values()), list(names), opened, closed)
    return replace(change, replaces={new: old for old, new in ids.items()})


def check_parallelism(plan: Plan, stage: Stage, parallelism: int, *, upgrading: bool = False) -> None:
    """Raise RequestError unless the stage can have `parallelism` workers. `upgrading`: also for a while more than key groups."""
    if not isinstance(parallelism, int) or isinstance(parallelism, bool) or parallelism < 1:
        raise RequestError(f"operator `{stage.name}` can't have {parallelism!r} workers; the least is 1")
    if stage.is_keyed and parallelism > plan.key_groups and not upgrading:
        raise RequestError(f"operator `{stage.name}` can't have {parallelism} workers: it has {plan.key_groups} key groups")
    fixed = stage.fixed_parallelism
    if parallelism != fixed and isinstance(stage.chain[0].operator, Broadcast):
        raise RequestError(f"operator `{stage.name}` can't have {parallelism} workers: one puts the rows in the order that all workers get")
    if fixed is not None and parallelism != fixed:
        raise RequestError(f"operator `{stage.name}` can't have {parallelism} workers: its source or sink works with {fixed} only")
    if parallelism != stage.parallelism and not stage.can_be_scaled:
        problem = "its source can't reassign its splits while it is read (`Source.share_out`)"
        if isinstance(stage.chain[0].operator, OwnTime):
            problem = "a worker that joins would not know the event time that the others have come to; call it right behind the source"
        raise RequestError(f"operator `{stage.name}` can't have {parallelism} workers: {problem}")


def _grown(plan: Plan, stage: Stage, parallelism: int, code: NewCode | None) -> Rescale:
    tasks = {task.name: task for task in plan.tasks}
    by_name = {s.name: s for s in plan.stages}
    old, template = stage.workers, tasks[stage.workers[0]]
    template = template if code is None else coded(template, code)
    changed = replace(stage, parallelism=parallelism, codes=(*map(code_of, old), *[template.code] * (parallelism - len(old))))
    joining = changed.workers[len(old) :]
    opened: list[ChannelSpec] = []
    # What tasks get in addition, so that each is made once: 1,000 workers behind 1,000 sources have a million channels.
    outputs: dict[tuple[WorkerId, int], list[ChannelId]] = {}
    more_inputs: dict[WorkerId, list[ChannelId]] = {}

    def channel(sender: WorkerId, receiver: WorkerId) -> ChannelId:
        opened.append(ChannelSpec(ChannelId(plan.next_channel + len(opened)), sender, receiver))
        return opened[-1].id

    feeders = [(feeder, at) for feeder in _feeders(plan, stage) for at, e in enumerate(tasks[feeder].exchanges) if e.target == stage.name]
    for index, name in enumerate(joining, stage.parallelism):
        inputs = []
        for feeder, position in feeders:
            inputs.append(channel(feeder, name))
            outputs.setdefault((feeder, position), []).append(inputs[-1])
        exchanges = []
        for exchange in template.exchanges:
            receivers = by_name[exchange.target].workers
            ids = tuple(channel(name, receiver) for receiver in receivers)
            for receiver, id_ in zip(receivers, ids, strict=True):
                more_inputs.setdefault(receiver, []).append(id_)
            exchanges.append(replace(exchange, channels=ids))
        tasks[name] = replace(template, index=index, exchanges=tuple(exchanges), inputs=tuple(inputs))
    for (feeder, position), added in outputs.items():
        tasks[feeder] = _with_exchange(tasks[feeder], position, (*tasks[feeder].exchanges[position].channels, *added))
    for receiver, added in more_inputs.items():
        tasks[receiver] = replace(tasks[receiver], inputs=(*tasks[receiver].inputs, *added))
    return _rescaled(plan, changed, tasks, joining, (), opened, [])


def _shrunk(plan: Plan, stage: Stage, parallelism: int) -> Rescale:
    staying, leaving = stage.workers[:parallelism], stage.workers[parallelism:]
    gone = frozenset(leaving)
    closed = [c for c in plan.channels if c.sender in gone or c.receiver in gone]
    ids = {c.id for c in closed}
    opened: list[ChannelSpec] = []
    tasks: dict[WorkerId, TaskSpec] = {task.name: task for task in plan.tasks if task.name not in gone}
    for name, task in list(tasks.items()):
        for position, exchange in enumerate(task.exchanges):
            left = tuple(id_ for id_ in exchange.channels if id_ not in ids)
            if exchange.channels and not left:  # its only downstream worker leaves
                receiver = staying[task.index % parallelism]
                opened.append(ChannelSpec(ChannelId(plan.next_channel + len(opened)), name, receiver))
                left = (opened[-1].id,)
                tasks[receiver] = replace(tasks[receiver], inputs=(*tasks[receiver].inputs, left[0]))
            tasks[name] = _with_exchange(tasks[name], position, left)
        inputs = tuple(id_ for id_ in tasks[name].inputs if id_ not in ids)
        tasks[name] = replace(tasks[name], inputs=inputs)
    fed = {channel.receiver for channel in closed if channel.sender in gone}
    for name in sorted(fed & tasks.keys()):
        if not tasks[name].inputs:  # all its upstream workers leave
            sender = tasks[staying[tasks[name].index % parallelism]]
            position = next(i for i, exchange in enumerate(sender.exchanges) if exchange.target == tasks[name].stage)
            opened.append(ChannelSpec(ChannelId(plan.next_channel + len(opened)), sender.name, name))
            channels = (*sender.exchanges[position].channels, opened[-1].id)
            tasks[sender.name] = _with_exchange(sender, position, channels)
            tasks[name] = replace(tasks[name], inputs=(opened[-1].id,))
    changed = replace(stage, parallelism=parallelism, codes=tuple(map(code_of, staying)))
    return _rescaled(plan, changed, tasks, (), leaving, opened, closed)


def _rescaled(
    plan: Plan,
    changed: Stage,
    tasks: dict[WorkerId, TaskSpec],
    joining: Sequence[WorkerId],
    leaving: Sequence[WorkerId],
    opened: list[ChannelSpec],
    closed: list[ChannelSpec],
) -> Rescale:
    stages = tuple(changed if s.name == changed.name else s for s in plan.stages)
    for number, worker in enumerate(joining, plan.next_worker):
        tasks[worker] = replace(tasks[worker], number=WorkerNumber(number))
    ordered = [tasks[worker] for s in stages for worker in s.workers]
    ordered = [replace(task, parallelism=changed.parallelism) if task.stage == changed.name else task for task in ordered]
    gone = {channel.id for channel in closed}
    channels = (*(channel for channel in plan.channels if channel.id not in gone), *opened)
    now = replace(
        plan,
        stages=stages,
        tasks=tuple(ordered),
        channels=channels,
        next_channel=plan.next_channel + len(opened),
        next_worker=plan.next_worker + len(joining),
    )
    return Rescale(changed.name, now, tuple(joining), tuple(leaving), tuple(opened), tuple(closed))


def _feeders(plan: Plan, stage: Stage) -> list[WorkerId]:
    """Return the upstream workers of the stage."""
    return [worker for s in plan.stages if any(o.target == stage.name for o in s.outputs) for worker in s.workers]


def coded(task: TaskSpec, code: NewCode) -> TaskSpec:
    """Return the task with other code."""
    return replace(task, code=code.version, chain=code.chain, environment=code.environment)


def _with_exchange(task: TaskSpec, position: int, channels: tuple[ChannelId, ...]) -> TaskSpec:
    exchanges: list[ExchangeSpec] = list(task.exchanges)
    exchanges[position] = replace(exchanges[position], channels=channels)
    return replace(task, exchanges=tuple(exchanges))
