"""Stela: the effect of an operator's rate on the dataflow's output; workers go to, and nodes leave from, where the effect is
largest.

Xu, Peng, Gupta: Stela: Enabling Stream Processing Systems to Scale-in and Scale-out On-demand, IC2E 2016. An operator is
congested when it gets over `congestion` (1.2) times what it processes. Its effective throughput percentage is

    ETP(i) = throughput of the sinks that i reaches by paths without a congested operator / throughput of all sinks

Out, for each of the N slots: the congested operator with the highest ETP gets one more worker, its rate becomes (k + 1) / k of
its old rate, the rates are propagated downstream, and the ETPs are recomputed; ties go to the first in the dataflow. For added
nodes, N = new nodes * instances / nodes. In: the node with the lowest sum of its instances' ETPs goes; its instances are handed
round robin to the others, those with the lowest sums first.

Invariant: a sink counts once, by however many paths it is reached.

The caller decides when to scale. Unless `slots`, `add_nodes` or `remove_nodes` say so, Stela adds one worker while an operator is
congested, and removes none.

>>> from .dataflow.figures import OperatorFigures
>>> from .dataflow.snapshot import Edge
>>> source, slow = OperatorFigures("source", 1, source_rate=1000), OperatorFigures("slow", 2, true_processing_rate=500)
>>> Stela().decide(DataflowSnapshot((source, slow), (Edge("source", "slow"),)), None)[0].parallelism
{'slow': 3}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...engine.errors import FlowError
from ..checks import given, positive, whole
from .base import ScalingPolicy
from .bounds import largest, within_bounds
from .dataflow.demand import bounded, offered, selectivity
from .dataflow.figures import OperatorFigures
from .dataflow.snapshot import DataflowSnapshot
from .decision import Relocation, ScalingDecision

MOST_SLOTS = 4096
"""The most slots that are filled at a time: each takes a look at the whole dataflow."""

CONGESTION = 1.2
"""The multiple of an operator's processing rate that may arrive before it counts as congested."""


@dataclass(frozen=True, slots=True)
class FlowRates:
    """The arrival and processing rates of every operator, in records/s, and the congested operators."""

    arriving: Mapping[str, float]
    processed: Mapping[str, float]
    congested: frozenset[str]


@dataclass(frozen=True, slots=True)
class Stela(ScalingPolicy[None]):
    """A policy that scales by throughput alone: latency and the cost of a worker don't count.

    `slots` workers are added, or `add_nodes` nodes' worth of them, or `remove_nodes` (0 or 1) is taken; without any, one worker
    where an operator is congested: it gets more than `congestion` times what it processes.

    Raises FlowError, naming the setting, for impossible values.
    """

    name: ClassVar[str] = "stela"

    slots: int | None = None
    add_nodes: int = 0
    remove_nodes: int = 0
    congestion: float = CONGESTION

    def __post_init__(self) -> None:
        whole(self, 0, *given(self, "slots"), "add_nodes")
        whole(self, 0, "remove_nodes", most=1)
        positive(self, "congestion")
        if self.remove_nodes and (self.add_nodes or self.slots):
            raise FlowError("Stela: remove_nodes is 1, but add_nodes or slots ask for more: scale in or out, not both")

    def start(self) -> None:
        return None

    def decide(self, snapshot: DataflowSnapshot, memory: None) -> tuple[ScalingDecision, None]:
        return (_scale_in(snapshot, self.congestion) if self.remove_nodes else self._scale_out(snapshot)), None

    def _scale_out(self, snapshot: DataflowSnapshot) -> ScalingDecision:
        workers, chosen = snapshot.parallelism, list[str]()
        for _ in range(checked_slots(self._slots_asked(snapshot))):
            flow = flow_of(snapshot, workers, self.congestion)
            etp = effective_throughput(snapshot, flow)
            free = [n for n in snapshot.order if n in flow.congested and workers[n] < largest(snapshot.operator(n), snapshot.settings)]
            if not free:
                break
            best = max(free, key=etp.__getitem__)
            workers[best] += 1
            chosen.append(f"{best} (ETP {etp[best]:.2f})")
        changed, notes = within_bounds(
            snapshot, {name: workers[name] for name in snapshot.order if workers[name] != snapshot.parallelism[name]}
        )
        reason = f"one worker each, in turn, for {', '.join(chosen)}" if chosen else "no operator is congested that may have more workers"
        return ScalingDecision(changed, reason="; ".join([reason, *notes]), add_nodes=self.add_nodes if changed else 0)

    def _slots_asked(self, snapshot: DataflowSnapshot) -> int:
        """Return the number of workers to add. Raises FlowError if nodes are to be added and no operator states its nodes."""
        if self.add_nodes:
            placed = [node for operator in snapshot.operators for node in operator.nodes]
            if not placed:
                raise FlowError("policy `stela` with add_nodes needs the operators' nodes: they say how many instances a node has")
            return self.add_nodes * len(placed) // len(set(placed))
        return 1 if self.slots is None else self.slots


def checked_slots(slots: int) -> int:
    """Return the number of slots. Raises FlowError for too many at a time."""
    if slots > MOST_SLOTS:
        raise FlowError(f"at most {MOST_SLOTS} slots are filled at a time, not {slots}: ask for fewer slots or nodes")
    return slots


def flow_of(snapshot: DataflowSnapshot, parallelism: Mapping[str, int], congestion: float = CONGESTION) -> FlowRates:
    """Return the rates that follow from the rates from outside, if the operators had these numbers of workers.

    An operator's capacity is its true rate, or its processing rate if that isn't known. It is congested if more than `congestion`
    times what it processes arrives.
    """
    arriving: dict[str, float] = {}
    processed: dict[str, float] = {}
    for name in snapshot.order:
        operator = snapshot.operator(name)
        inputs = (processed[edge.source] * _factor(snapshot.operator(edge.source)) * edge.share for edge in snapshot.inputs(name))
        outside = offered(operator) or (0.0 if snapshot.inputs(name) else operator.observed_output_rate or 0.0)
        arriving[name] = bounded(sum(inputs) + outside)
        can_do = _rate(snapshot, operator)
        limit = arriving[name] if can_do is None else can_do * parallelism[name] / operator.parallelism
        processed[name] = min(arriving[name], limit)
    over = congestion * (1 + 1e-9)
    congested = frozenset(name for name in snapshot.order if arriving[name] > over * processed[name])
    return FlowRates(arriving, processed, congested)


def effective_throughput(snapshot: DataflowSnapshot, flow: FlowRates) -> dict[str, float]:
    """Return the ETP of every operator, 0 to 1."""
    total = sum(flow.processed[name] for name in snapshot.sinks)
    reached: dict[str, set[str]] = {}
    for name in reversed(snapshot.order):
        targets = [edge.target for edge in snapshot.outputs(name)]
        reached[name] = set[str]().union(*(reached[target] for target in targets if target not in flow.congested)) if targets else {name}
    return {name: sum(flow.processed[sink] for sink in reached[name]) / total if total else 0.0 for name in snapshot.order}


def node_sums(snapshot: DataflowSnapshot, congestion: float = CONGESTION) -> dict[str, float]:
    """Return the sum of the ETPs of the instances on each node, lowest first; ties go to the first in the snapshot."""
    etp = effective_throughput(snapshot, flow_of(snapshot, snapshot.parallelism, congestion))
    sums: dict[str, float] = {}
    for operator in snapshot.operators:
        for node in operator.nodes:
            sums[node] = sums.get(node, 0.0) + etp[operator.name]
    return dict(sorted(sums.items(), key=lambda item: item[1]))


def _scale_in(snapshot: DataflowSnapshot, congestion: float) -> ScalingDecision:
    sums = node_sums(snapshot, congestion)
    if len(sums) < 2:
        raise FlowError(f"policy `stela` can't remove a node: the operators' nodes name {', '.join(sums) or 'none'}, and one has to stay")
    gone, *rest = sums
    leaving = [operator.name for operator in snapshot.operators for node in operator.nodes if node == gone]
    relocate = tuple(Relocation(name, gone, rest[index % len(rest)]) for index, name in enumerate(leaving))
    ranking = ", ".join(f"{node} {total:.2f}" for node, total in sums.items())
    return ScalingDecision(remove_node=gone, reason=f"lowest sum of ETPs: {ranking}", relocate=relocate)


def _rate(snapshot: DataflowSnapshot, operator: OperatorFigures) -> float | None:
    takes_input = operator.true_processing_rate or operator.observed_processing_rate
    return takes_input or (None if snapshot.inputs(operator.name) else operator.true_output_rate)


def _factor(operator: OperatorFigures) -> float:
    known = selectivity(operator)
    return 1.0 if known is None else known
