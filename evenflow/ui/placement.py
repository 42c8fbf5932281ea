"""Where a job's workers are, for the page: the nodes with their workers, and the nodes of each stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..engine.protocol.ids import WorkerId
from ..scheduler.policies.nodes.placement import short
from ..scheduler.protocol.view import JobView


def node_of(view: JobView, worker: WorkerId) -> str | None:
    """The short name of a worker's node; None where there are no nodes, or it has no process yet."""
    place = None if view.cluster is None else view.cluster.places.get(worker)
    return None if place is None else short(place.node)


def nodes_of(view: JobView, workers: Iterable[WorkerId]) -> list[tuple[str, int]]:
    """The nodes of these workers, each with how many of them it has, the most first."""
    found = (node_of(view, worker) for worker in workers)
    return Counter(node for node in found if node is not None).most_common()


def nodes_with_workers(view: JobView) -> list[dict[str, Any]] | None:
    """Every node of the cluster, those with workers first; None where there are no nodes."""
    if view.cluster is None:
        return None
    workers: dict[str, list[WorkerId]] = {}
    for worker, place in view.cluster.places.items():
        workers.setdefault(place.node, []).append(worker)
    nodes = [
        {"name": short(node.name), "cpus": node.cpus, "free": round(node.free, 2), "workers": workers.get(node.name, [])}
        for node in view.cluster.nodes
    ]
    return sorted(nodes, key=lambda node: (-len(node["workers"]), node["name"]))
