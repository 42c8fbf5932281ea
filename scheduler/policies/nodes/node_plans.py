"""Plans for more nodes, or for one less: the operators that get more or fewer workers, and the workers that move to other
processes.

A pure function of the job and its cluster. The job carries plans out (`node_scaling.py`), and a page can show them before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ....engine.errors import RequestError
from ....engine.protocol.ids import WorkerId, index_of, stage_of
from ...load.window import WorkerWindow
from ..dataflow.observed import observed
from ..dataflow.scaled_stage import ScaledStage
from ..dataflow.settings import PolicySettings
from ..dataflow.snapshot import DataflowSnapshot
from .node_policies import NODE_POLICIES, NodePolicy
from .placement import ClusterNode, ClusterView, short

DRAINED = "Ray drains it"
"""The reason for emptying a node that is about to go."""


class TooFewNodesError(RequestError):
    """The cluster has not as many nodes with room as were asked for. Ray's autoscaler may bring them."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    """`added`: nodes that come; `removed`: the one that goes. `parallelism`: of the operators that change, workers before and
    after; `replaced`: workers that another process takes over.
    """

    parallelism: Mapping[str, tuple[int, int]]
    reason: str
    added: tuple[str, ...] = ()
    removed: str | None = None
    replaced: tuple[WorkerId, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeDrain:
    """The departure of a node's workers.

    `parallelism`: new numbers of workers of the operators that get fewer; `replaced`: workers that continue in another process.
    """

    node: str
    parallelism: Mapping[str, int]
    replaced: tuple[WorkerId, ...]


def node_drain(workers: Mapping[str, int], scalable: Collection[str], places: Mapping[WorkerId, str], node: str) -> NodeDrain:
    """Return the departure of the workers on `node`.

    `workers`: the number of each operator's; `scalable`: the operators that can have fewer; `places`: the node of each worker.
    Workers of an operator are numbered from 0, and those with the highest numbers leave. So every operator gets as many fewer
    as it has on the node, and at least one stays; a worker on the node whose number stays continues in a process on another.

    >>> places = {"read-0": "a", "count-0": "b", "count-1": "a", "count-2": "b"}
    >>> node_drain({"read": 1, "count": 3}, {"count"}, places, "a")
    NodeDrain(node='a', parallelism={'count': 2}, replaced=('read-0', 'count-1'))
    """
    fewer: dict[str, int] = {}
    replaced: list[WorkerId] = []
    names = {(stage_of(worker), index_of(worker)): worker for worker in places}
    for operator, count in workers.items():
        here = [index for index in range(count) if places[names[operator, index]] == node]
        after = max(1, count - len(here)) if operator in scalable else count
        if after < count:
            fewer[operator] = after
        replaced += [names[operator, index] for index in here if index < after]
    return NodeDrain(node, fewer, tuple(replaced))


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job and its cluster.

    `windows`: the windows of each worker to use; `cpus`: that each worker sets aside. `saves_state`: workers can resume on other
    nodes from a checkpoint.
    """

    name: str
    stages: Sequence[ScaledStage]
    windows: Mapping[WorkerId, Sequence[WorkerWindow]]
    settings: PolicySettings
    cluster: ClusterView
    cpus: float
    saves_state: bool

    @property
    def unused(self) -> list[ClusterNode]:
        """The nodes with room that the job isn't on, those with the most room first."""
        used = {place.node for place in self.cluster.places.values()}
        free = (node for node in self.cluster.nodes if node.name not in used and node.free_slots(self.cpus))
        return sorted(free, key=lambda node: -node.free_slots(self.cpus))

    def more_nodes(self, count: int, policy: str) -> NodePlan:
        """Plan the use of `count` more nodes, with as many workers as they have slots, fewer if the operators need no more.

        Operators with resources of their own get none of them: slots are for workers that need only CPUs.

        Raises RequestError if no operator is congested, and for an unknown policy, and else TooFewNodesError.
        """
        chooser, free = _policy(policy), self.unused[:count]
        if count < 1:
            raise RequestError(f"job `{self.name}` can't be given {count} nodes; the least is 1")
        slots = sum(node.free_slots(self.cpus) for node in free) + (count - len(free)) * self._usual_slots
        plain = [replace(stage, fixed=stage.fixed or stage.resources) for stage in self.stages]
        decision = chooser.fill(self._snapshot(plain), slots)
        if not decision.parallelism:
            raise RequestError(f"job `{self.name}` is given no node: {decision.reason}; `job.scale` gives an operator more workers anyway")
        if len(free) < count:
            raise TooFewNodesError(f"job `{self.name}`: {len(free)} of {count} nodes that it has no workers on have room")
        return NodePlan(self._changes(decision.parallelism), decision.reason, added=tuple(node.name for node in free))

    @property
    def _usual_slots(self) -> int:
        """The slots of the largest node that the job is on, which an autoscaler's new node is expected to have."""
        return max((node.slots(self.cpus) for node in self.cluster.nodes if node.workers), default=1)

    @property
    def nodes(self) -> dict[WorkerId, str]:
        """The node of each worker; nothing where not every worker has a process yet."""
        places = {worker: place.node for worker, place in self.cluster.places.items()}
        return places if places.keys() >= self.windows.keys() else {}

    def one_node_less(self, node: str | None, policy: str) -> NodePlan:
        """Plan the return of a node, by default the first of the policy's ranking from which every worker can leave.

        Raises RequestError if the job has no workers on the node or none on others, or one there that can't leave.
        """
        places = self.nodes
        ranking = _policy(policy).leaving(self._snapshot(self.stages, places))
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
            raise RequestError(
                f"job `{self.name}`: {why}; with CheckpointConfig(dir=...) they would resume on other nodes from a checkpoint"
            )
        return NodePlan(self._changes(chosen.parallelism), ranking.reason, removed=chosen.node, replaced=chosen.replaced)

    def emptied(self, node: str) -> NodePlan:
        """Plan to empty a node that is about to go: all its workers continue on other nodes, from a checkpoint.

        Without saved state the workers that can leave do so. Raises RequestError if some can't.
        """
        if not self.saves_state:
            return replace(self.one_node_less(node, next(iter(NODE_POLICIES))), reason=DRAINED)
        return NodePlan({}, DRAINED, removed=node, replaced=tuple(sorted(worker for worker, on in self.nodes.items() if on == node)))

    def _changes(self, wanted: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        before = {stage.name: stage.parallelism for stage in self.stages}
        return {operator: (before[operator], workers) for operator, workers in wanted.items()}

    def _snapshot(self, stages: Sequence[ScaledStage], nodes: Mapping[WorkerId, str] | None = None) -> DataflowSnapshot:
        return replace(observed(stages, self.windows, self.settings, nodes), settings=self.settings)


def _policy(name: str) -> NodePolicy:
    if name not in NODE_POLICIES:
        raise RequestError(f"{name!r} is not a node policy: use one of {', '.join(NODE_POLICIES)}")
    return NODE_POLICIES[name]
