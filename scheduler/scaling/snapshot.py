"""What a whole dataflow does at one time: all that a scaling policy sees.

Invariant: a snapshot that exists is sound: operators have a name of their own and at least one worker, rates are finite and not negative,
edges join operators that are there, and there is no cycle.

>>> source = OperatorFigures("source", 1, source_rate=2000)
>>> count = OperatorFigures("count", 2, true_processing_rate=1000)
>>> snapshot = DataflowSnapshot((count, source), (Edge("source", "count"),))
>>> snapshot.order, snapshot.sources, snapshot.parallelism
(('source', 'count'), ('source',), {'count': 2, 'source': 1})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...engine.errors import FlowError
from .figures import OperatorFigures, check_number
from .settings import DEFAULTS, PolicySettings


class Edge(NamedTuple):
    """Records go from operator `source` to `target`: all that `source` puts out, or the `share` of it."""

    source: str
    target: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class DataflowSnapshot:
    """`time`: seconds, of any clock that goes on evenly. `reconfiguration_s`: how long the last change of workers took, 0 if not known.
    `node_loads`: for each node the busy part of its CPUs, 0 to 1.

    `order` has the operators' names, each behind all that feed it. Raises FlowError, naming operator and field, for one that can't be.
    """

    operators: tuple[OperatorFigures, ...]
    edges: tuple[Edge, ...] = ()
    settings: PolicySettings = DEFAULTS
    time: float = 0.0
    reconfiguration_s: float = 0.0
    node_loads: Mapping[str, float] = field(default_factory=dict)
    order: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _named: dict[str, OperatorFigures] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named: dict[str, OperatorFigures] = {}
        for operator in self.operators:
            if operator.name in named:
                raise FlowError(f"operators: {operator.name!r} is there twice: give every operator a name of its own")
            named[operator.name] = operator
        if not named:
            raise FlowError("operators is empty: a dataflow has at least one")
        _check_edges(self.edges, named)
        check_number("time", self.time, least=None)
        check_number("reconfiguration_s", self.reconfiguration_s)
        for node, load in self.node_loads.items():
            check_number(f"node_loads: {node}", load, most=1)
        object.__setattr__(self, "_named", named)
        object.__setattr__(self, "order", _topological(tuple(named), self.edges))
        self._check_chains()

    def operator(self, name: str) -> OperatorFigures:
        """The figures of an operator that is in the snapshot."""
        return self._named[name]

    def inputs(self, name: str) -> tuple[Edge, ...]:
        """The edges that lead to an operator."""
        return tuple(edge for edge in self.edges if edge.target == name)

    def outputs(self, name: str) -> tuple[Edge, ...]:
        """The edges that leave an operator."""
        return tuple(edge for edge in self.edges if edge.source == name)

    @property
    def sources(self) -> tuple[str, ...]:
        """Operators that no other one feeds."""
        return tuple(name for name in self.order if not self.inputs(name))

    @property
    def sinks(self) -> tuple[str, ...]:
        """Operators that feed no other one."""
        return tuple(name for name in self.order if not self.outputs(name))

    @property
    def parallelism(self) -> dict[str, int]:
        """The number of workers of every operator."""
        return {operator.name: operator.parallelism for operator in self.operators}

    def chained(self, name: str) -> tuple[str, ...]:
        """The operators in the same workers as `name`, itself among them, in topological order."""
        chain = self.operator(name).chain
        return (name,) if chain is None else tuple(other for other in self.order if self.operator(other).chain == chain)

    def _check_chains(self) -> None:
        workers: dict[str, OperatorFigures] = {}
        for operator in self.operators:
            if operator.chain is None:
                continue
            first = workers.setdefault(operator.chain, operator)
            if first.parallelism != operator.parallelism:
                raise FlowError(
                    f"operator `{operator.name}`: parallelism is {operator.parallelism}, that of `{first.name}` is {first.parallelism}: "
                    f"operators of one chain ({operator.chain}) run in the same workers"
                )


def _check_edges(edges: tuple[Edge, ...], named: Mapping[str, OperatorFigures]) -> None:
    seen = set[tuple[str, str]]()
    for index, edge in enumerate(edges):
        for name in (edge.source, edge.target):
            if name not in named:
                raise FlowError(f"edges[{index}] names {name!r}, which is not among the operators: {', '.join(named)}")
        if (edge.source, edge.target) in seen:
            raise FlowError(f"edges[{index}] from {edge.source!r} to {edge.target!r} is there already: list it once, with its share")
        seen.add((edge.source, edge.target))
        check_number(f"edges[{index}]: share", edge.share, most=1)


def _topological(names: tuple[str, ...], edges: tuple[Edge, ...]) -> tuple[str, ...]:
    """Kahn's algorithm; operators that could come next keep the order in which they are listed."""
    waits = {name: {edge.source for edge in edges if edge.target == name} for name in names}
    order: list[str] = []
    while waits:
        ready = next((name for name, before in waits.items() if not before), None)
        if ready is None:
            raise FlowError(f"edges: there is a cycle through {', '.join(waits)}: a dataflow has none")
        del waits[ready]
        order.append(ready)
        for before in waits.values():
            before.discard(ready)
    return tuple(order)
