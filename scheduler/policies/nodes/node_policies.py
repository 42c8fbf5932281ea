"""Policies that assign the workers of a new node to operators and choose the node to return: Stela, or in turn, the baseline.

>>> from ..dataflow.figures import OperatorFigures
>>> from ..dataflow.snapshot import Edge
>>> source = OperatorFigures("source", 1, source_rate=1000, nodes=("x",))
>>> slow = OperatorFigures("slow", 2, true_processing_rate=500, nodes=("x", "y"))
>>> seen = DataflowSnapshot((source, slow), (Edge("source", "slow"),))
>>> [dict(NODE_POLICIES[name].fill(seen, 3).parallelism) for name in ("stela", "round_robin")]
[{'slow': 4}, {'source': 3, 'slow': 3}]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from ..bounds import largest, within_bounds
from ..dataflow.snapshot import DataflowSnapshot
from ..decision import ScalingDecision
from ..stela import Stela, checked_slots, node_sums
from .placement import short


class Ranking(NamedTuple):
    """The nodes of a job, the one to give back first in front, and why that one, for people."""

    nodes: tuple[str, ...]
    reason: str


class NodePolicy(ABC):
    """Asked once for each node scaling; it keeps nothing from one to the next."""

    name: ClassVar[str]

    @abstractmethod
    def fill(self, snapshot: DataflowSnapshot, slots: int) -> ScalingDecision:
        """Return the operators that get `slots` more workers together; fewer where they need or may have no more."""

    @abstractmethod
    def leaving(self, snapshot: DataflowSnapshot) -> Ranking:
        """Return the order in which nodes would be returned. The operators' `nodes` say which there are."""


class StelaNodes(NodePolicy):
    """Workers for congested operators, by effective throughput percentage (ETP); the node with the lowest sum of ETPs goes."""

    name: ClassVar[str] = "stela"

    def fill(self, snapshot: DataflowSnapshot, slots: int) -> ScalingDecision:
        return Stela(slots=slots).decide(snapshot, None)[0]

    def leaving(self, snapshot: DataflowSnapshot) -> Ranking:
        sums = node_sums(snapshot)
        return Ranking(tuple(sums), f"sums of ETPs: {', '.join(f'{short(node)} {total:.2f}' for node, total in sums.items())}")


class RoundRobinNodes(NodePolicy):
    """Assigns workers without regard to load, as Storm's scheduler: one worker for each operator in turn, from the sources on;
    the node with the first name goes.
    """

    name: ClassVar[str] = "round_robin"

    def fill(self, snapshot: DataflowSnapshot, slots: int) -> ScalingDecision:
        workers, slots = snapshot.parallelism, checked_slots(slots)
        bounds = {name: largest(snapshot.operator(name), snapshot.settings) for name in snapshot.order}
        while slots and any(workers[name] < bounds[name] for name in snapshot.order):
            for name in [name for name in snapshot.order if workers[name] < bounds[name]][:slots]:
                workers[name] += 1
                slots -= 1
        grown = {name: count for name, count in workers.items() if count > snapshot.parallelism[name]}
        changed, notes = within_bounds(snapshot, grown)
        reason = f"one worker each, in turn, for {', '.join(changed)}" if changed else "no operator may have more workers"
        return ScalingDecision(changed, reason="; ".join([reason, *notes]))

    def leaving(self, snapshot: DataflowSnapshot) -> Ranking:
        nodes = tuple(sorted({node for operator in snapshot.operators for node in operator.nodes}))
        return Ranking(nodes, f"in turn: {', '.join(map(short, nodes))}")


NODE_POLICIES: dict[str, NodePolicy] = {policy.name: policy for policy in (StelaNodes(), RoundRobinNodes())}
"""Node policies by the names that users give them, the default first."""
