"""A simulated cluster with rates: operators, queues between them, backpressure and reconfigurations that take time, in virtual time.

It moves numbers of records, not records: a minute of a large dataflow takes a fraction of a second, and a scaling policy can be tried in a
closed loop (`closed_loop.py`). In each tick operators work from the sources to the sinks, if there is room downstream; an operator
that feeds several sends all its output to each, or the edge's share, and waits for the fullest.

>>> source = ModelOperator("source", rate=1000.0, demand=lambda time: 300.0)
>>> model = ClusterModel([source, ModelOperator("count", rate=100.0)], [("source", "count")])
>>> model.advance(60.0)
>>> count = model.snapshot().operator("count")
>>> round(count.observed_processing_rate), round(count.true_processing_rate)
(100, 100)
>>> model.carry_out(ScalingDecision({"count": 3}))
>>> model.advance(30.0)
>>> model.parallelism["count"], round(model.snapshot().operator("count").observed_processing_rate)
(3, 300)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...engine.errors import FlowError, JobBusyError
from ...scheduler.policies.dataflow.figures import OperatorFigures
from ...scheduler.policies.dataflow.settings import DEFAULTS, PolicySettings
from ...scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from ...scheduler.policies.decision import ScalingDecision
from .model_operator import ModelOperator, OperatorState

__all__ = ["ClusterModel", "ModelOperator"]


@dataclass(frozen=True, slots=True)
class _UnderWay:
    decision: ScalingDecision
    until: float


class ClusterModel:
    """A simulated cluster. `reconfiguration_s`: seconds until a decision is in effect. `halts`: True if the affected operators stop
    meanwhile.

    `tick`: seconds, no longer than the operators' `queue_s`. Raises FlowError for an impossible dataflow.
    """

    def __init__(
        self,
        operators: Iterable[ModelOperator],
        edges: Iterable[tuple[str, str] | tuple[str, str, float]],
        settings: PolicySettings = DEFAULTS,
        *,
        reconfiguration_s: float = 2.0,
        halts: bool = False,
        tick: float = 0.25,
    ) -> None:
        self.time = 0.0
        self.settings, self.edges = settings, tuple(Edge(*edge) for edge in edges)
        self._states = {spec.name: OperatorState(spec) for spec in operators}
        self._reconfiguration_s, self._halts, self._tick = reconfiguration_s, halts, tick
        self._under_way: _UnderWay | None = None
        self._levels = _levels(DataflowSnapshot(tuple(OperatorFigures(name, 1) for name in self._states), self.edges))
        self._ticks = 0
        for name, state in self._states.items():
            if state.spec.queue_s < 2 * tick:
                raise FlowError(f"operator `{name}`: queue_s is {state.spec.queue_s:g}, it must be two ticks at least: {2 * tick:g}")

    @property
    def parallelism(self) -> dict[str, int]:
        """The present number of workers of each operator."""
        return {name: state.parallelism for name, state in self._states.items()}

    @property
    def reconfiguring(self) -> bool:
        """True while a decision is being carried out."""
        return self._under_way is not None

    @property
    def backlog(self) -> float:
        """The unread records of the sources."""
        return sum(state.queued for state in self._states.values() if state.spec.demand is not None)

    def processed(self, operator: str) -> float:
        """Return the records that an operator has processed since the start."""
        return self._states[operator].processed

    def waiting(self) -> float:
        """Return the records that wait anywhere, including those of the sources."""
        return sum(state.queued for state in self._states.values())

    def advance(self, seconds: float) -> None:
        """Let time pass, in whole ticks."""
        for _ in range(max(1, round(seconds / self._tick))):
            self._step()

    def snapshot(self) -> DataflowSnapshot:
        """Return the measurements since the last snapshot, or the last reconfiguration."""
        figures = tuple(state.figures(self.time) for state in self._states.values())
        self._forget()
        return DataflowSnapshot(figures, self.edges, self.settings, self.time)

    def carry_out(self, decision: ScalingDecision) -> None:
        """Begin with a decision; it is in effect after `reconfiguration_s`. Raises JobBusyError while another one is in progress."""
        if self._under_way is not None:
            raise JobBusyError(f"a reconfiguration is under way until {self._under_way.until:g} s: wait for its end")
        self._under_way = _UnderWay(decision, self.time + self._reconfiguration_s)
        for name in (*decision.parallelism, *decision.rebalance):
            self._states[name].halted = self._halts

    def stand_still(self, seconds: float) -> None:
        """Stop processing for some seconds, as after a restore of the last checkpoint; the sources' backlog keeps growing.

        Raises JobBusyError while a decision is in progress.
        """
        if self._under_way is not None:
            raise JobBusyError(f"a reconfiguration is under way until {self._under_way.until:g} s: wait for its end")
        for state in self._states.values():
            state.halted = True
        self.advance(seconds)
        for state in self._states.values():
            state.halted = False
        self._forget()

    def _step(self) -> None:
        if self._under_way is not None and self.time >= self._under_way.until - 1e-9:
            self._arrive(self._under_way.decision)
        for state in self._states.values():
            if state.spec.demand is not None:
                state.push(state.spec.demand(self.time) * self._tick)
        for level in self._levels:
            first = self._ticks % len(level)
            for name in (*level[first:], *level[:first]):
                self._work(name)
        self.time += self._tick
        self._ticks += 1

    def _work(self, name: str) -> None:
        state = self._states[name]
        out = [(self._states[edge.target], edge.share) for edge in self.edges if edge.source == name]
        wants = state.can_do(self._tick) * state.spec.selectivity
        through = min([1.0, *(target.room / (wants * share) for target, share in out if wants * share > 0)])
        done = state.work(self._tick, through) * state.spec.selectivity
        for target, share in out:
            target.push(done * share)

    def _arrive(self, decision: ScalingDecision) -> None:
        self._under_way = None
        for name, workers in decision.parallelism.items():
            self._states[name].rescale(workers)
        for name in decision.rebalance:
            self._states[name].rebalance()
        for state in self._states.values():
            state.halted = False
        self._forget()

    def _forget(self) -> None:
        for state in self._states.values():
            state.forget()


def _levels(dataflow: DataflowSnapshot) -> Sequence[tuple[str, ...]]:
    """Group the operators by their distance from the sources; those of a level take turns to be the first to fill a queue."""
    depth: dict[str, int] = {}
    for name in dataflow.order:
        depth[name] = 1 + max((depth[edge.source] for edge in dataflow.inputs(name)), default=-1)
    return [tuple(name for name in dataflow.order if depth[name] == level) for level in range(max(depth.values()) + 1)]
