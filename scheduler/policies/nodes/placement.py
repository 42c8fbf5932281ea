"""Placement of new workers on a cluster's nodes: a plan from the nodes' workers and free CPUs, without I/O.

A node's *slots* are the workers of a job that it is meant for: its CPUs over those that a worker sets aside, or one for each CPU
if a worker sets none aside. If workers set CPUs aside a full node takes no more, else slots only decide where the next one goes
first; a head node without CPUs gets workers last.

Invariant: a plan has a node for every worker, and sets aside no CPU that isn't free; if there is no room, the error says what is
missing.

>>> a, b = ClusterNode("a", cpus=4, free=4, workers=1), ClusterNode("b", cpus=4, free=4)
>>> place([a, b], 3, 1.0, "spread"), place([a, b], 3, 1.0, "pack")
(('b', 'a', 'b'), ('a', 'a', 'a'))
>>> place([a], 6, 1.0, "pack")
Traceback (most recent call last):
    ...
evenflow.scheduler.policies.nodes.placement.NoRoomError: no room for 2 of 6 workers: each needs 1 CPU; free: 4 of 4 on node a
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ....engine.errors import ClusterError
from ....engine.protocol.ids import WorkerId

SPREAD, PACK = "spread", "pack"
STRATEGIES = (SPREAD, PACK)

_TOLERANCE = 1e-6
"""CPUs: sums of fractions such as 0.1 are not exact."""


class NoRoomError(ClusterError):
    """The cluster has no room for all new workers. `missing`: for how many; `cpus`: that each of them sets aside."""

    def __init__(self, missing: int, count: int, cpus: float, nodes: Iterable[ClusterNode]) -> None:
        self.missing, self.cpus = missing, cpus
        free = ", ".join(f"{node.free:g} of {node.cpus:g} on node {short(node.name)}" for node in nodes)
        needed = "the job may use no node" if not free else f"each needs {cpus:g} CPU{'' if cpus == 1 else 's'}; free: {free}"
        super().__init__(f"no room for {missing} of {count} worker{'' if count == 1 else 's'}: {needed}")

    def __reduce__(self) -> tuple[type[ClusterError], tuple[str]]:
        """Pickle as the ClusterError that it is, so that it crosses processes."""
        return ClusterError, (str(self),)


class WorkerPlace(NamedTuple):
    """A worker's place: its node, and its process in Ray, named `JOB/WORKER` if it has only had this worker's task."""

    process: str
    node: str


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node as one job sees it: its `cpus`, the CPUs that are not reserved, and how many of the job's workers are on it."""

    name: str
    cpus: float
    free: float
    workers: int = 0

    def slots(self, cpus: float) -> int:
        """Return the number of the job's workers that the node is meant for, if each sets `cpus` aside."""
        return int((self.cpus + _TOLERANCE) / cpus) if cpus else int(self.cpus)

    def free_slots(self, cpus: float) -> int:
        """Return the number of further workers that it has room for."""
        return int((self.free + _TOLERANCE) / cpus) if cpus else max(0, self.slots(cpus) - self.workers)


def place(nodes: Sequence[ClusterNode], count: int, cpus: float, strategy: str, avoid: Collection[str] = ()) -> tuple[str, ...]:
    """Return the nodes of `count` new workers that set `cpus` aside each, without the nodes to `avoid`.

    `spread`: one after the other where the job has the fewest workers. `pack`: where it has the most and has a free slot, so that
    as few nodes as possible are used. Raises NoRoomError if there is no room for all.
    """
    there = {node.name: node for node in nodes if node.name not in avoid}
    plan: list[str] = []
    while len(plan) < count:
        fitting = [node for node in there.values() if not cpus or node.free_slots(cpus)]
        if not fitting:
            raise NoRoomError(count - len(plan), count, cpus, [node for node in nodes if node.name in there])
        best = min(fitting, key=lambda node: _rank(node, cpus, strategy))
        there[best.name] = replace(best, free=max(0.0, best.free - cpus), workers=best.workers + 1)
        plan.append(best.name)
    return tuple(plan)


def short(node: str) -> str:
    """Return a node's name in the short form for people."""
    return node[:8]


def _rank(node: ClusterNode, cpus: float, strategy: str) -> tuple[int, float, int, str]:
    """Rank a node, lowest first. If all slots are taken, both strategies distribute workers by the nodes' sizes."""
    free = node.free_slots(cpus)
    if not free:
        slots = node.slots(cpus)
        return 1, node.workers / slots if slots else float("inf"), 0, node.name
    return (0, -node.workers, free, node.name) if strategy == PACK else (0, node.workers, -free, node.name)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """`nodes`: the nodes that are alive and not drained, with the job's processes on them. `places` of the workers. `reserved`: all
    spares have started. `draining`: nodes that Ray drains, because they are about to go; `seconds_left`: until Ray ends them, where it
    has a deadline. `starting`: Ray's autoscaler starts nodes. `home`: the coordinator's node, if Ray would start it again on another.
    """

    nodes: tuple[ClusterNode, ...] = ()
    places: Mapping[WorkerId, WorkerPlace] = field(default_factory=dict)
    reserved: bool = True
    draining: tuple[str, ...] = ()
    seconds_left: Mapping[str, float] = field(default_factory=dict)
    starting: bool = False
    home: str | None = None
