"""The cluster's nodes as Ray tells of them, and asking its autoscaler for more: what `scheduler/policies/nodes/placement.py` plans with.

Ray's view of free resources is a moment old. CPUs of processes that were just started are subtracted here; Ray learns of those
that have just ended a little later, so a search that finds no room is repeated for `ROOM_PATIENCE`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.client import ray as ray_client
from ray.util.placement_group import get_placement_group, placement_group, placement_group_table, remove_placement_group

from ...engine.plan.resources import CPU
from ...scheduler.policies.nodes.memory import memory_problem
from ...scheduler.policies.nodes.placement import ClusterNode, Need
from .process import WorkerProcess
from .ray_internals import draining_nodes, free_resources, nodes_are_starting

ROOM_PATIENCE = 2.0
"""Seconds after which Ray's view of free resources is certainly up to date."""

_LOOK, _LOOK_FOR_NODES = 0.25, 1.0
"""Seconds between two questions to Ray: if a request has been met, and if nodes are starting."""

_JUST = 1.0
"""Seconds for which Ray may not count a new process yet."""


def cluster_nodes(processes: Iterable[WorkerProcess], others: Collection[str] = ()) -> list[ClusterNode]:
    """List the nodes that are alive and not drained; their workers are the job's processes. `others`: resources besides CPUs to look at."""
    leaving = draining_nodes()
    there = list(processes)
    workers = Counter(process.node for process in there)
    recent: Counter[tuple[str, str]] = Counter()
    for process in there:
        if time.monotonic() - process.begun < _JUST:
            recent.update({(process.node, name): amount for name, amount in process.need.items()})
    free = free_resources()

    def left(node: str, name: str, total: float) -> float:
        return min(max(float(free.get(node, {}).get(name, 0.0)) - recent[node, name], 0.0), total)

    nodes = []
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        if node["Alive"] and node["NodeID"] not in leaving:
            name, has = node["NodeID"], {name: float(amount) for name, amount in node["Resources"].items()}
            cpus, rest = has.get(CPU, 0.0), {other: left(name, other, has[other]) for other in others if other in has}
            nodes.append(ClusterNode(name, cpus, left(name, CPU, cpus), workers[name], rest))
    return nodes


def lack_of_memory(workers: int) -> str | None:
    """Return why the cluster may lack the memory for a job of that many workers, by what Ray says is free on its nodes.

    None if it has, and where that is not known: to a Ray Client, which is not on the cluster, or while Ray doesn't answer.
    """
    if ray_client.is_connected():  # type: ignore[no-untyped-call]
        return None
    try:
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        free = free_resources()
    except RayError:
        return None
    if not all("memory" in free.get(node, {}) for node in nodes):
        return None
    return memory_problem(workers, sum(float(free[node]["memory"]) for node in nodes))


class RoomRequest:
    """A job's request to Ray's autoscaler: a placement group that waits for resources, which has no effect without an autoscaler.

    Once they are there, the group is removed, so that workers can have them. Ray removes it too when the driver has ended, however it
    ended. It keeps the group of a lost coordinator that it starts again, so the next one removes that, by its name. Several jobs of a
    cluster ask independently. Used under the coordinator's lock.
    """

    def __init__(self, job: str) -> None:
        self._name = f"{job}/room"
        self._group: Any = None
        self._asked: list[dict[str, float]] = []
        self._next_look, self._not_before = 0.0, 0.0

    def ask(self, needs: Iterable[Need]) -> None:
        """Ask for room for processes with these needs, in place of an earlier request."""
        bundles = sorted((dict(need) for need in needs if need), key=lambda need: sorted(need.items()))
        if bundles != self._asked:
            self.withdraw()
        self.look()
        if self._group is None and bundles and time.monotonic() >= self._not_before:
            self.withdraw_earlier()
            self._asked = bundles
            self._group = placement_group(bundles, name=self._name)

    @property
    def waits(self) -> bool:
        """True while the resources are not there."""
        return self._group is not None

    def withdraw_earlier(self) -> None:
        """Withdraw the request of a lost coordinator of the job."""
        with suppress(ValueError):  # there is none
            remove_placement_group(get_placement_group(self._name))

    def look(self) -> None:
        """Remove the group if it has got its resources. Ray may count them as used for a moment, in which the job doesn't ask again."""
        now = time.monotonic()
        if self._group is None or now < self._next_look:
            return
        self._next_look = now + _LOOK
        if placement_group_table(self._group)["state"] == "CREATED":
            self.withdraw()
            self._not_before = now + ROOM_PATIENCE

    def withdraw(self) -> None:
        """Withdraw the request."""
        if self._group is not None:
            remove_placement_group(self._group)
        self._group, self._asked = None, []


class RoomPatience:
    """The time for a search for room: `patience` seconds, and more while Ray's autoscaler starts nodes, up to `deadline`."""

    def __init__(self, deadline: float, patience: float) -> None:
        self._deadline, self._patience = deadline, patience
        self._until, self._next_look = min(deadline, time.monotonic() + patience), 0.0

    def is_over(self) -> bool:
        """Return True if no room is expected any more."""
        now = time.monotonic()
        if now < self._deadline and now >= self._next_look:
            self._next_look = now + _LOOK_FOR_NODES
            if nodes_are_starting():
                self._until = min(self._deadline, now + self._patience)
        return now >= self._until
