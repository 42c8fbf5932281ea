"""A dataflow at one time, as scaling policies see it.

Invariant: a snapshot that exists is sound: operators have a name of their own and at least one worker, rates are finite and not
negative, edges join existing operators, and there is no cycle.

>>> source = OperatorFigures("source", 1, source_rate=2000)
>>> count = OperatorFigures("count", 2, true_processing_rate=1000)
>>> snapshot = DataflowSnapshot((count, source), (Edge("source", "count"),))
>>> snapshot.order, snapshot.sources, snapshot.parallelism
(('source', 'count'), ('source',), {'count': 2, 'source': 1})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

from ....balancer.outside_json import shown
from ....balancer.snapshot import MOST
from ....engine.errors import SnapshotError
from .figures import OperatorFigures, check_number
from .settings import DEFAULTS, PolicySettings

T = TypeVar("T")

MOST_NAMES = 20
"""The number of names that an error lists."""


class Edge(NamedTuple):
    """Records go from operator `source` to `target`: all that `source` puts out, or the `share` of it."""

    source: str
    target: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class DataflowSnapshot:
    """The state of a dataflow.

    `time`: seconds, of any steady clock. `reconfiguration_s`: how long the last change of workers took, 0 if unknown.
    `node_loads`: for each node the busy share of its CPUs, 0 to 1.

    `order` has the operators' names in topological order. Raises SnapshotError, naming operator and field, for an impossible one.
    """

    operators: tuple[OperatorFigures, ...]
    edges: tuple[Edge, ...] = ()
    settings: PolicySettings = DEFAULTS
    time: float = 0.0
    reconfiguration_s: float = 0.0
    node_loads: Mapping[str, float] = field(default_factory=dict)
    order: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _named: dict[str, OperatorFigures] = field(init=False, repr=False, compare=False)
    _inputs: dict[str, tuple[Edge, ...]] = field(init=False, repr=False, compare=False)
    _outputs: dict[str, tuple[Edge, ...]] = field(init=False, repr=False, compare=False)
    _chains: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named: dict[str, OperatorFigures] = {}
        for operator in self.operators:
            if operator.name in named:
                raise SnapshotError(f"operators: {shown(operator.name)} appears twice: give every operator a name of its own")
            named[operator.name] = operator
        if not named:
            raise SnapshotError("operators is empty: a dataflow has at least one")
        _check_edges(self.edges, named)
        check_number("time", self.time, least=-MOST)
        check_number("reconfiguration_s", self.reconfiguration_s)
        for node, load in self.node_loads.items():
            check_number(f"node_loads: {node}", load, most=1)
        object.__setattr__(self, "_named", named)
        object.__setattr__(self, "_inputs", _grouped((edge.target, edge) for edge in self.edges))
        object.__setattr__(self, "_outputs", _grouped((edge.source, edge) for edge in self.edges))
        object.__setattr__(self, "order", self._topological())
        chained = ((chain, name) for name in self.order if (chain := named[name].chain) is not None)
        object.__setattr__(self, "_chains", _grouped(chained))
        self._check_chains()

    def operator(self, name: str) -> OperatorFigures:
        """Return the figures of an operator of the snapshot."""
        return self._named[name]

    def inputs(self, name: str) -> tuple[Edge, ...]:
        """Return the edges into an operator."""
        return self._inputs.get(name, ())

    def outputs(self, name: str) -> tuple[Edge, ...]:
        """Return the edges out of an operator."""
        return self._outputs.get(name, ())

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
        """Return the operators in the same workers as `name`, itself included, in topological order."""
        chain = self.operator(name).chain
        return (name,) if chain is None else self._chains[chain]

    def _topological(self) -> tuple[str, ...]:
        """Return the operators in topological order, by Kahn's algorithm; ties go to the one that is listed first."""
        names = tuple(self._named)
        place = {name: index for index, name in enumerate(names)}
        waits = {name: len(self.inputs(name)) for name in names}
        ready = [place[name] for name in names if not waits[name]]
        order: list[str] = []
        while ready:
            order.append(names[heappop(ready)])
            for edge in self.outputs(order[-1]):
                waits[edge.target] -= 1
                if not waits[edge.target]:
                    heappush(ready, place[edge.target])
        if len(order) < len(names):
            raise SnapshotError(f"edges: there is a cycle through {_names(name for name in names if waits[name])}: a dataflow has none")
        return tuple(order)

    def _check_chains(self) -> None:
        workers: dict[str, OperatorFigures] = {}
        for operator in self.operators:
            if operator.chain is None:
                continue
            first = workers.setdefault(operator.chain, operator)
            if first.parallelism != operator.parallelism:
                raise SnapshotError(
                    f"operator `{operator.name}`: parallelism is {operator.parallelism}, that of `{first.name}` is {first.parallelism}: "
                    f"operators of one chain ({operator.chain}) run in the same workers"
                )


def _check_edges(edges: tuple[Edge, ...], named: Mapping[str, OperatorFigures]) -> None:
    seen = set[tuple[str, str]]()
    for index, edge in enumerate(edges):
        for name in (edge.source, edge.target):
            if name not in named:
                raise SnapshotError(f"edges[{index}] names {shown(name)}, which is not among the operators: {_names(named)}")
        if (edge.source, edge.target) in seen:
            raise SnapshotError(f"edges[{index}] from {edge.source!r} to {edge.target!r} is listed twice: list it once, with its share")
        seen.add((edge.source, edge.target))
        check_number(f"edges[{index}]: share", edge.share, most=1)


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, tuple[T, ...]]:
    found: dict[str, list[T]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:MOST_NAMES]) + (f" and {len(listed) - MOST_NAMES} more" if len(listed) > MOST_NAMES else "")


def sink_latencies(snapshot: DataflowSnapshot) -> dict[str, float]:
    """Return the milliseconds from outside to each sink on the slowest path: the sum over its operators. Empty if none is known.

    >>> operators = tuple(OperatorFigures(name, 1, latency_ms=ms) for name, ms in (("src", 1), ("a", 5), ("b", 9), ("sink", 2)))
    >>> edges = (Edge("src", "a"), Edge("src", "b"), Edge("a", "sink"), Edge("b", "sink"))
    >>> sink_latencies(DataflowSnapshot(operators, edges)), upstream(DataflowSnapshot(operators, edges), "a")
    ({'sink': 12.0}, {'src'})
    """
    if all(operator.latency_ms is None for operator in snapshot.operators):
        return {}
    so_far: dict[str, float] = {}
    for name in snapshot.order:
        before = max((so_far[edge.source] for edge in snapshot.inputs(name)), default=0.0)
        so_far[name] = before + (snapshot.operator(name).latency_ms or 0.0)
    return {name: so_far[name] for name in snapshot.sinks}


def upstream(snapshot: DataflowSnapshot, name: str) -> set[str]:
    """Return all operators whose records reach `name`."""
    found: set[str] = set()
    for other in reversed(snapshot.order):
        if any(edge.target == name or edge.target in found for edge in snapshot.outputs(other)):
            found.add(other)
    return found
