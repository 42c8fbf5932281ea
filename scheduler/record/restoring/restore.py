"""Derives from a manifest what each task of a plan restores: the files it reads, and the position of its source.

Operators are matched by the names of their stages. Keyed state finds its worker by the plan's routing table, so the number of
workers, the table and the number of key groups may differ from those that the checkpoint was taken with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....balancer.evacuation import evacuated, highest_worker
from ....engine.errors import FlowError
from ....engine.operators.rows.read import Read
from ....engine.plan.physical import Plan, Stage
from ....engine.plan.rescale import rescale
from ....engine.protocol.elements import MIN_TIME
from ....engine.protocol.ids import CheckpointNumber, WorkerId
from ....engine.protocol.restored_keys import RestoredKeys
from ....engine.protocol.routing import RoutingTable
from ....engine.state_description import parts_change
from ...protocol.manifest import Manifest, TaskEntry
from .restored_task import RestoredChain, RestoredTask


def restored_tasks(manifest: Manifest, plan: Plan, url: str, checkpoint: CheckpointNumber) -> dict[WorkerId, RestoredTask]:
    """Return the state to restore by worker. Raises FlowError for a source that can't run with another number of workers than it
    had.
    """
    tables, now = plan.tables, plan.state
    tasks: dict[WorkerId, RestoredTask] = {}
    for stage in plan.stages:
        entries = manifest.tasks.get(stage.name)
        if entries is None:
            continue
        positions = _positions(stage, entries)
        table, before = tables.get(stage.name), manifest.tables.get(stage.name)
        watermark = _event_time(entries, before)
        change = parts_change(manifest.state[stage.name], now[stage.name]) if stage.name in manifest.state and stage.name in now else None
        times = earliest_of([entry.own_times for entry in entries if not entry.finished])
        for index, worker in enumerate(stage.workers):
            same = before == table and len(entries) == stage.parallelism
            keys = RestoredKeys(table, before, same) if table is not None else None
            chains = _chains(index, entries, keys) if keys is not None else ()
            tasks[worker] = RestoredTask(url, checkpoint, watermark, positions[index], chains, keys, times, change)
    return tasks


def earliest_of(own_times: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the event time that all workers of a stage have reached, by operator.

    >>> earliest_of([{"with_time": 5}, {"with_time": 3}])
    {'with_time': 3}
    """
    names = set[str]().union(*own_times)
    return {name: min(times.get(name, MIN_TIME) for times in own_times) for name in sorted(names)}


def fitting_tables(manifest: Manifest, plan: Plan) -> dict[str, RoutingTable]:
    """Return the manifest's routing tables of those stages that still have as many workers and key groups."""
    stages = {stage.name: stage.parallelism for stage in plan.stages}
    return {
        name: table
        for name, table in manifest.tables.items()
        if len(manifest.tasks[name]) == stages.get(name) and len(table) == plan.key_groups
    }


def unsplit(tables: Mapping[str, RoutingTable]) -> dict[str, RoutingTable]:
    """Return the tables without split keys, for a job that begins without state: its workers don't know which keys they share."""
    return {name: RoutingTable(table.groups, table.keys) for name, table in tables.items()}


def within(tables: Mapping[str, RoutingTable], plan: Plan) -> dict[str, RoutingTable]:
    """Return the tables without workers that the plan doesn't have: their keys go to the others."""
    workers = {stage.name: stage.parallelism for stage in plan.stages}
    return {
        name: table if highest_worker(table) < workers[name] else evacuated(table, workers[name], np.zeros(len(table)))
        for name, table in tables.items()
    }


def plan_at(manifest: Manifest, plan: Plan, parallelism: Mapping[str, int]) -> Plan:
    """Return the plan with the numbers of workers and the routing tables at the checkpoint: the job had been rescaled.

    `parallelism`: numbers of workers of stages that shall have these instead.
    """
    for stage in plan.stages:
        count = parallelism.get(stage.name, len(manifest.tasks.get(stage.name, ())))
        if count and count != stage.parallelism:
            plan = rescale(plan, plan.stage_of(stage.name), count, plan.tables).plan
    saved = {name: table for name, table in manifest.tables.items() if name in parallelism and len(table) == plan.key_groups}
    return plan.with_tables({**fitting_tables(manifest, plan), **within(saved, plan)})


def _event_time(entries: tuple[TaskEntry, ...], table: RoutingTable | None) -> int:
    """Return the event time of a stage. A worker without keys doesn't count: a join that just got it may hold its event time back."""
    owners = range(len(entries)) if table is None else table.workers
    return min((entries[worker].watermark for worker in owners if not entries[worker].finished), default=MIN_TIME)


def _positions(stage: Stage, entries: tuple[TaskEntry, ...]) -> list[Any]:
    """Assign splits to workers that joined a source and found nothing to read: without a position they would read it from the
    start.
    """
    head = stage.chain[0].operator
    if not isinstance(head, Read):
        return [None] * stage.parallelism
    positions = [entry.position for entry in entries if entry.position is not None or not entry.finished]
    if len(positions) == stage.parallelism:
        return positions
    if any(position is None for position in positions):
        raise FlowError(f"source `{stage.name}`: a worker of it has no position in the checkpoint")
    return head.source.share_out(positions, stage.parallelism)


def _chains(index: int, entries: tuple[TaskEntry, ...], keys: RestoredKeys) -> tuple[RestoredChain, ...]:
    """Return the chains that may hold keys of worker `index`.

    These are the chains of workers that had one of its key groups, or keys with routes of their own; and its own, which also has
    the columns.
    """
    before, now = keys.before, keys.now
    if keys.same:
        workers = {index}
    elif before is None or len(before) != len(now):
        workers = set(range(len(entries)))
    else:
        shared = {worker for split in before.splits.values() for worker in split.workers}
        workers = {index, *np.unique(before.groups[now.groups == index]).tolist(), *before.keys.values(), *_homes(before, now), *shared}
    return tuple(RestoredChain(worker, entries[worker].files) for worker in sorted(workers) if worker < len(entries))


def _homes(before: RoutingTable, now: RoutingTable) -> set[int]:
    """Return the former owners of the keys that have a route of their own now, or are split."""
    hashes = np.array([*now.keys, *now.splits], np.uint64)
    return {int(worker) for worker in before.owners(hashes)} if len(hashes) else set()
