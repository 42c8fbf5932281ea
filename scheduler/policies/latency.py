"""Latency violations: when results have been too late several times in a row, the slowest operators get more workers.

Schroeck: Building an Optimizer for Dynamic Scaling of Stream Processing Engines (master's thesis, TU Berlin; its code is
github.com/dominikschroeck/auto-scaler):

    continuous operators:  workers = ceil(arriving / (throughput / parallelism))
    windows and joins:     workers = parallelism + window_step
    one more node:         when the mean load of the nodes is over cluster_load

for the `slowest` operators with the highest latency on the paths to a sink that was over `latency_target_ms` in `violations`
observations in a row. It never removes workers, and it counts achieved rates, not possible ones: an operator that held its
senders back shows its true rate, any other a lower one, and gets too many workers.

>>> from .dataflow.figures import OperatorFigures
>>> from .base import settled
>>> from .dataflow.settings import PolicySettings
>>> o = OperatorFigures("o", 12, source_rate=386950.42, observed_processing_rate=178376.65, latency_ms=900)
>>> settled(LatencyPolicy(), DataflowSnapshot((o,), settings=PolicySettings(latency_target_ms=500))).parallelism
{'o': 27}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ...engine.errors import FlowError
from ..checks import share, whole
from .base import ScalingPolicy
from .bounds import within_bounds
from .dataflow.demand import arrivals, whole_workers
from .dataflow.figures import OperatorFigures
from .dataflow.snapshot import DataflowSnapshot, sink_latencies, upstream
from .decision import ScalingDecision


@dataclass(frozen=True, slots=True)
class LatencyMemory:
    """`late`: sinks that were late in the last look, and how many looks running."""

    late: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LatencyPolicy(ScalingPolicy[LatencyMemory]):
    """A policy that gives the slowest operators more workers when results are too late. It needs a latency target.

    After `violations` observations in a row over the target the `slowest` operators get more: windows and joins `window_step`
    workers. A node is requested when the nodes' mean load is over `cluster_load`.

    Raises FlowError, naming the setting, for impossible values.
    """

    name: ClassVar[str] = "latency"

    violations: int = 3
    slowest: int = 1
    window_step: int = 2
    cluster_load: float = 0.7

    def __post_init__(self) -> None:
        whole(self, 1, "violations", "slowest", "window_step")
        share(self, "cluster_load")

    @property
    def needs_latency(self) -> bool:
        return True

    def start(self) -> LatencyMemory:
        return LatencyMemory()

    def at_once(self) -> Self:
        return replace(self, violations=1)

    def decide(self, snapshot: DataflowSnapshot, memory: LatencyMemory) -> tuple[ScalingDecision, LatencyMemory]:
        target = snapshot.settings.latency_target_ms
        if target is None:
            raise FlowError("policy `latency` needs latency_target_ms: what a record may take from source to sink")
        before = dict(memory.late)
        latencies = sink_latencies(snapshot)
        late = {sink: before.get(sink, 0) + 1 for sink, ms in latencies.items() if ms > target}
        due = [sink for sink, count in late.items() if count >= self.violations]
        if not due:
            worst = max(late.values(), default=0)
            reason = f"{worst} of {self.violations} violations in a row" if late else _in_time(snapshot, target)
            return ScalingDecision(reason=reason), LatencyMemory(tuple(late.items()))
        slow = _slowest(snapshot, due, self.slowest)
        wanted = _more(snapshot, slow, self.window_step)
        changed, notes = within_bounds(snapshot, wanted)
        load = sum(snapshot.node_loads.values()) / len(snapshot.node_loads) if snapshot.node_loads else 0.0
        nodes = 1 if load > self.cluster_load else 0
        what = [_adds(snapshot, name) for name in changed]
        what += [f"{name} has the workers for what comes to it" for name in slow if wanted.get(name) == snapshot.operator(name).parallelism]
        what += [f"{name} stays unchanged: its arrivals or its throughput are not known" for name in slow if name not in wanted]
        what += [] if slow else ["no operator before it is known to add to that"]
        full = [f"the nodes are busy for {load:.0%} of the time"] if nodes else []
        often = f"{self.violations} times in a row, " if self.violations > 1 else "with "
        reason = f"{due[0]} was late {often}{latencies[due[0]]:.1f} ms for {target:g} ms"
        return ScalingDecision(changed, reason="; ".join([reason, *what, *full, *notes]), add_nodes=nodes), LatencyMemory()


def _in_time(snapshot: DataflowSnapshot, target: float) -> str:
    unknown = [operator.name for operator in snapshot.operators if operator.latency_ms is None]
    if len(unknown) == len(snapshot.operators):
        return "no operator's latency is known"
    return f"every sink is within {target:g} ms" + (f", where that is known: {', '.join(unknown)} say nothing" if unknown else "")


def _adds(snapshot: DataflowSnapshot, name: str) -> str:
    """Return the reason why an operator gets workers: its own latency, or that of others of its chain."""
    latency = snapshot.operator(name).latency_ms
    return f"{name} is in one chain with such an operator" if latency is None else f"{name} adds {latency:.1f} ms"


def _slowest(snapshot: DataflowSnapshot, sinks: list[str], count: int) -> list[str]:
    """Return the `count` operators that add most latency on the paths to these sinks, slowest first; sources only wait for others."""
    behind = set(sinks).union(*(upstream(snapshot, sink) for sink in sinks))
    slow = [name for name in snapshot.order if name in behind and snapshot.operator(name).latency_ms is not None]
    working = [name for name in slow if snapshot.inputs(name) or not snapshot.outputs(name)]
    return sorted(working, key=lambda name: -(snapshot.operator(name).latency_ms or 0.0))[:count]


def _more(snapshot: DataflowSnapshot, slow: list[str], window_step: int) -> dict[str, int]:
    arriving = arrivals(snapshot)
    wanted = {}
    for name in slow:
        operator, rate = snapshot.operator(name), arriving[name]
        throughput = _throughput(operator)
        if operator.kind != "continuous":
            wanted[name] = operator.parallelism + window_step
        elif rate is not None and throughput:
            wanted[name] = max(operator.parallelism, whole_workers(rate * operator.parallelism / throughput))
    return wanted


def _throughput(operator: OperatorFigures) -> float | None:
    return operator.observed_processing_rate or operator.true_processing_rate
