"""Placement of new workers on a cluster's nodes: a plan from the nodes' workers and free CPUs, without I/O.

A worker's *need* is what it sets aside, by Ray's names: CPUs, and for some operators GPUs, memory and resources of the cluster's own.

A node's *slots* are the workers of a job that it is meant for: its CPUs over those that a worker sets aside, or one for each CPU
if a worker sets none aside. If workers set CPUs aside a full node takes no more, else slots only decide where the next one goes
first; a head node without CPUs gets workers last. Nodes with resources that a worker doesn't need are left to those that do.

Invariant: a plan has a node for every worker, and sets aside nothing that isn't free; if there is no room, the error says what is
missing.

>>> a, b = ClusterNode("a", cpus=4, free=4, workers=1), ClusterNode("b", cpus=4, free=4)
>>> place([a, b], [{"CPU": 1.0}] * 3, "spread"), place([a, b], [{"CPU": 1.0}] * 3, "pack")
(('b', 'a', 'b'), ('a', 'a', 'a'))
>>> place([a, replace(b, others={"GPU": 1.0})], [{"CPU": 1.0}, {"CPU": 1.0, "GPU": 1.0}], "spread")
('a', 'b')
>>> place([a], [{"CPU": 1.0}] * 6, "pack")
Traceback (most recent call last):
    ...
evenflow.scheduler.policies.nodes.placement.NoRoomError: no room for 2 of 6 workers: each needs 1 CPU; free: 4 of 4 on node a
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from ....engine.errors import ClusterError
from ....engine.plan.resources import CPU, MEMORY, described
from ....engine.protocol.ids import WorkerId

SPREAD, PACK = "spread", "pack"
STRATEGIES = (SPREAD, PACK)

_TOLERANCE = 1e-6
"""CPUs: sums of fractions such as 0.1 are not exact."""

Need: TypeAlias = Mapping[str, float]
"""The amounts that a worker sets aside, by Ray's names of resources, without zeros."""


class NoRoomError(ClusterError):
    """The cluster has no room for all `count` new workers. `missing`: the needs of those without a place."""

    def __init__(self, missing: Sequence[Need], count: int, nodes: Iterable[ClusterNode]) -> None:
        self.missing = missing
        kinds = list(dict.fromkeys(described(need) for need in missing))
        others = sorted({name for need in missing for name in need if name != CPU})
        free = ", ".join(_free(node, others) for node in nodes)
        needed = f"each needs {' or '.join(kinds)}; free: {free}" if free else "the job may use no node"
        super().__init__(f"no room for {len(missing)} of {count} worker{'' if count == 1 else 's'}: {needed}")

    def __reduce__(self) -> tuple[type[ClusterError], tuple[str]]:
        """Pickle as the ClusterError that it is, so that it crosses processes."""
        return ClusterError, (str(self),)


class WorkerPlace(NamedTuple):
    """A worker's place: its node, and its process in Ray, named `JOB/WORKER` if it has only had this worker's task."""

    process: str
    node: str


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node as one job sees it: its `cpus`, the CPUs that are not reserved, and how many of the job's workers are on it. `others`: what
    is free of the other resources that operators of the job name.
    """

    name: str
    cpus: float
    free: float
    workers: int = 0
    others: Mapping[str, float] = field(default_factory=dict)

    def slots(self, cpus: float) -> int:
        """Return the number of the job's workers that the node is meant for, if each sets `cpus` aside."""
        return int((self.cpus + _TOLERANCE) / cpus) if cpus else int(self.cpus)

    def free_slots(self, cpus: float) -> int:
        """Return the number of further workers that it has room for."""
        return int((self.free + _TOLERANCE) / cpus) if cpus else max(0, self.slots(cpus) - self.workers)

    def fits(self, need: Need) -> bool:
        """Return True if it has room for one more worker with that need."""
        return (CPU not in need or self.free_slots(need[CPU]) > 0) and all(
            self.others.get(name, 0.0) + _TOLERANCE >= amount for name, amount in need.items() if name != CPU
        )

    def taken(self, need: Need) -> ClusterNode:
        """Return the node with one more worker."""
        others = {name: max(0.0, free - need.get(name, 0.0)) for name, free in self.others.items()}
        return replace(self, free=max(0.0, self.free - need.get(CPU, 0.0)), workers=self.workers + 1, others=others)


def place(nodes: Sequence[ClusterNode], needs: Sequence[Need], strategy: str, avoid: Collection[str] = ()) -> tuple[str, ...]:
    """Return the node of a new worker for each of `needs`, without the nodes to `avoid`. Those with the rarest needs choose first.

    `spread`: one after the other where the job has the fewest workers. `pack`: where it has the most and has a free slot, so that
    as few nodes as possible are used. Raises NoRoomError if there is no room for all.
    """
    there = {node.name: node for node in nodes if node.name not in avoid}
    plan: dict[int, str] = {}
    missing: list[Need] = []
    for index in sorted(range(len(needs)), key=lambda index: -len(needs[index].keys() - {CPU})):
        need = needs[index]
        fitting = [node for node in there.values() if node.fits(need)]
        if not fitting:
            missing.append(need)
            continue
        best = min(fitting, key=lambda node, need=need: _rank(node, need, strategy))  # type: ignore[misc]
        there[best.name] = best.taken(need)
        plan[index] = best.name
    if missing:
        raise NoRoomError(missing, len(needs), [node for node in nodes if node.name in there])
    return tuple(plan[index] for index in range(len(needs)))


def short(node: str) -> str:
    """Return a node's name in the short form for people."""
    return node[:8]


def _rank(node: ClusterNode, need: Need, strategy: str) -> tuple[int, int, float, int, str]:
    """Rank a node, lowest first. If all slots are taken, both strategies distribute workers by the nodes' sizes."""
    cpus = need.get(CPU, 0.0)
    free, unneeded = node.free_slots(cpus), len([name for name in node.others if name not in need and name != MEMORY])
    if not free:
        slots = node.slots(cpus)
        return 1, unneeded, node.workers / slots if slots else float("inf"), 0, node.name
    return (0, unneeded, -node.workers, free, node.name) if strategy == PACK else (0, unneeded, node.workers, -free, node.name)


def _free(node: ClusterNode, others: Sequence[str]) -> str:
    """Describe the CPUs of a node that are free, and its other resources of these names."""
    more = {name: node.others.get(name, 0.0) for name in others}
    return f"{node.free:g} of {node.cpus:g}{f' CPUs, {described(more)}' if more else ''} on node {short(node.name)}"


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
