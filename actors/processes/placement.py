"""The cluster's nodes as Ray tells of them, and asking its autoscaler for more: what `scheduler/policies/nodes/placement.py` plans with.

Ray's view of free resources is a moment old. CPUs of processes that were just started are subtracted here; Ray learns of those
that have just ended a little later, so a search that finds no room is repeated for `ROOM_PATIENCE`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import ray
from ray.exceptions import RayError
from ray.util.client import ray as ray_client

from ...scheduler.policies.nodes.memory import memory_problem
from ...scheduler.policies.nodes.placement import ClusterNode
from .process import WorkerProcess
from .ray_internals import free_resources

ROOM_PATIENCE = 2.0
"""Seconds for which a node without room is checked again."""

_JUST = 1.0
"""Seconds for which Ray may not count a new process yet."""


def cluster_nodes(processes: Iterable[WorkerProcess], cpus: float) -> list[ClusterNode]:
    """List the nodes that are alive; their workers are the job's processes, and each worker has reserved `cpus`."""
    there = list(processes)
    workers = Counter(process.node for process in there)
    recent = Counter(process.node for process in there if time.monotonic() - process.begun < _JUST)
    free = free_resources()
    nodes = []
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        if node["Alive"]:
            name, total = node["NodeID"], float(node["Resources"].get("CPU", 0.0))
            left = float(free.get(name, {}).get("CPU", 0.0)) - recent[name] * cpus
            nodes.append(ClusterNode(name, total, min(max(left, 0.0), total), workers[name]))
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
    """A job's request to Ray's autoscaler; without one it has no effect. Ray keeps only the newest request of a cluster."""

    def __init__(self) -> None:
        self._asked: list[dict[str, float]] = []

    def ask(self, workers: int, cpus: float) -> None:
        """Ask for room for `workers` workers in total; a worker that reserves no CPU counts as one slot of one CPU."""
        self._request([{"CPU": cpus or 1.0}] * workers)

    def withdraw(self) -> None:
        """Withdraw the request."""
        self._request([])

    def _request(self, bundles: list[dict[str, float]]) -> None:
        if bundles != self._asked:
            from ray.autoscaler.sdk import request_resources

            self._asked = bundles
            request_resources(bundles=bundles)
