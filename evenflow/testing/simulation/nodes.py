"""The nodes of a simulated cluster, and the placement of workers."""

from __future__ import annotations

from collections.abc import Iterable

from ...engine.protocol.ids import WorkerId
from ...scheduler.policies.nodes.placement import ClusterNode, ClusterView, WorkerPlace

NODES = ("a", "b", "c", "d")
CPUS = 4.0


class SimulatedNodes:
    """The nodes of one job. New workers go to the node with the fewest, among those that it may use."""

    def __init__(self) -> None:
        self._avoided: frozenset[str] = frozenset()
        self._preferred: frozenset[str] = frozenset()
        self._draining: dict[str, float | None] = {}
        self.home = NODES[0]
        """The coordinator's node."""
        self._places: dict[WorkerId, str] = {}
        self._view: ClusterView | None = None

    def use(self, avoid: frozenset[str], prefer: frozenset[str]) -> None:
        """Avoid some nodes for new workers, and prefer others."""
        self._avoided, self._preferred = avoid, prefer

    def drain(self, node: str, seconds_left: float | None = None) -> None:
        """Tell the job that a node is about to go, in `seconds_left`, None for a time that it isn't told."""
        self._draining[node] = seconds_left
        self._view = None

    def leave(self) -> None:
        """Move the coordinator to another node."""
        self.home = next(node for node in NODES if node not in self._draining)
        self._view = None

    def place(self, workers: Iterable[WorkerId]) -> None:
        """Start these workers, on their previous node unless it is to be avoided."""
        for worker in workers:
            if worker not in self._places or self._places[worker] in self._avoided | self._draining.keys():
                allowed = [node for node in NODES if node not in self._avoided | self._draining.keys()] or list(NODES)
                wanted = [node for node in allowed if node in self._preferred] or allowed
                self._places[worker] = min(wanted, key=self._count)
                self._view = None

    def keep(self, workers: Iterable[WorkerId]) -> None:
        """Keep only these workers' processes."""
        there = set(workers)
        self._places = {worker: node for worker, node in self._places.items() if worker in there}
        self._view = None

    def view(self) -> ClusterView:
        """Return the cluster as the job sees it."""
        if self._view is None:
            nodes = tuple(ClusterNode(node, CPUS, CPUS, self._count(node)) for node in NODES if node not in self._draining)
            places = {worker: WorkerPlace(worker, node) for worker, node in self._places.items()}
            left = {node: seconds for node, seconds in self._draining.items() if seconds is not None}
            self._view = ClusterView(nodes, places, draining=tuple(sorted(self._draining)), seconds_left=left, home=self.home)
        return self._view

    def _count(self, node: str) -> int:
        return sum(place == node for place in self._places.values())
