"""What a job would do with more nodes, or with one node less: which operators get more or fewer workers, and which workers go on elsewhere.

A function of what is known of the job and its cluster; nothing is begun. The job carries plans out (`node_scaling.py`), and whoever
follows it can show them before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....engine.errors import RequestError
from ....engine.protocol.ids import WorkerId
from ...load.window import WorkerWindow
from ..dataflow.observed import observed
from ..dataflow.scaled_stage import ScaledStage
from ..dataflow.settings import PolicySettings
from ..dataflow.snapshot import DataflowSnapshot
from .cluster_view import ClusterView
from .node_drain import node_drain
from .node_policies import NODE_POLICIES, NodePolicy
from .placement import Node, short


class TooFewNodesError(RequestError):
    """The cluster has not as many nodes with room as were asked for. Ray's autoscaler may bring them."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    """`added`: nodes that come; `removed`: the one that goes. `parallelism`: of the operators that change, workers before and after;
    `replaced`: workers that another process takes over.
    """

    parallelism: Mapping[str, tuple[int, int]]
    reason: str
    added: tuple[str, ...] = ()
    removed: str | None = None
    replaced: tuple[WorkerId, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job and its cluster. `windows`: those of each worker that count; `cpus`: that each worker sets aside. `saves_state`: workers can go
    on elsewhere from a checkpoint.
    """

    name: str
    stages: Sequence[ScaledStage]
    windows: Mapping[WorkerId, Sequence[WorkerWindow]]
    settings: PolicySettings
    cluster: ClusterView
    cpus: float
    saves_state: bool

    @property
    def unused(self) -> list[Node]:
        """Nodes with room that the job isn't on, those with the most room first."""
        used = {place.node for place in self.cluster.places.values()}
        free = (node for node in self.cluster.nodes if node.name not in used and node.free_slots(self.cpus))
        return sorted(free, key=lambda node: -node.free_slots(self.cpus))

    def more_nodes(self, count: int, policy: str) -> NodePlan:
        """`count` more nodes, with as many workers as they have slots, fewer if the operators need no more.

        Raises TooFewNodesError, or RequestError if no operator is congested, and for an unknown policy.
        """
        chooser, free = _policy(policy), self.unused
        if count < 1:
            raise RequestError(f"job `{self.name}` can't be given {count} nodes; the least is 1")
        if len(free) < count:
            raise TooFewNodesError(f"job `{self.name}`: {len(free)} of {count} nodes that it has no workers on have room")
        slots = sum(node.free_slots(self.cpus) for node in free[:count])
        decision = chooser.fill(self._snapshot(slots=slots))
        if not decision.parallelism:
            raise RequestError(
                f"job `{self.name}` is given no node: {decision.reason}; `job.scale` gives an operator more workers all the same"
            )
        return NodePlan(self._changes(decision.parallelism), decision.reason, added=tuple(node.name for node in free[:count]))

    @property
    def nodes(self) -> dict[WorkerId, str]:
        """The node of each worker; nothing where not every worker has a process yet."""
        places = {worker: place.node for worker, place in self.cluster.places.items()}
        return places if places.keys() >= self.windows.keys() else {}

    def one_node_less(self, node: str | None, policy: str) -> NodePlan:
        """Without a node, by default the first of the policy's ranking from which every worker can leave.

        Raises RequestError if the job has no workers on the node or none on others, or one there that can't leave.
        """
        places = self.nodes
        ranking = _policy(policy).leaving(self._snapshot(nodes=places))
        if len(ranking.nodes) < 2:
            raise RequestError(f"job `{self.name}` can't give a node back: its workers are on {len(ranking.nodes)}, and one has to stay")
        if node is not None and node not in ranking.nodes:
            raise RequestError(f"job `{self.name}` can't give node {short(node)} back: it has no workers there")
        workers = {stage.name: stage.parallelism for stage in self.stages}
        scalable = {stage.name for stage in self.stages if stage.can_be_scaled}
        drains = [node_drain(workers, scalable, places, each) for each in (ranking.nodes if node is None else [node])]
        possible = [one for one in drains if not one.replaced]
        chosen = drains[0] if self.saves_state else next(iter(possible), drains[0])
        if chosen.replaced and not self.saves_state:
            why = f"{', '.join(chosen.replaced)} on node {short(chosen.node)} can't leave, since one worker of each operator stays"
            raise RequestError(f"job `{self.name}`: {why}; with CheckpointConfig(dir=...) they would go on elsewhere from a checkpoint")
        return NodePlan(self._changes(chosen.parallelism), ranking.reason, removed=chosen.node, replaced=chosen.replaced)

    def _changes(self, wanted: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        before = {stage.name: stage.parallelism for stage in self.stages}
        return {operator: (before[operator], workers) for operator, workers in wanted.items()}

    def _snapshot(self, slots: int | None = None, nodes: Mapping[WorkerId, str] | None = None) -> DataflowSnapshot:
        settings = replace(self.settings, slots=slots)
        return replace(observed(self.stages, self.windows, settings, nodes), settings=settings)


def _policy(name: str) -> NodePolicy:
    if name not in NODE_POLICIES:
        raise RequestError(f"{name!r} is not a node policy: use one of {', '.join(NODE_POLICIES)}")
    return NODE_POLICIES[name]
